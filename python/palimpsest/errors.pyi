# SPDX-License-Identifier: Apache-2.0
import builtins

class Error(Exception):
    @property
    def op(self) -> str | None: ...
    @property
    def axis(self) -> int | None: ...
    @property
    def got(self) -> str | None: ...
    @property
    def expected(self) -> str | None: ...

class ValueError(Error, builtins.ValueError): ...

class ShapeError(ValueError):
    pass

class NameError(ValueError, builtins.NameError): ...

class OverflowError(ValueError, builtins.OverflowError): ...

class UnusedInputError(ValueError):
    pass

class DisconnectedError(ValueError):
    pass

class TypeError(Error, builtins.TypeError): ...

class DTypeError(TypeError):
    pass

class DeviceError(TypeError):
    pass

class AssertionError(Error, builtins.AssertionError): ...

class NanGuardError(AssertionError):
    pass

class AliasError(Error, builtins.ValueError): ...

class SplitError(Error, builtins.ValueError): ...

class NotLinearError(Error, builtins.ValueError): ...

class MissingInputError(Error, builtins.ValueError): ...

class IoError(Error, OSError):
    pass

class FormatError(IoError):
    pass

class CommunicationError(IoError):
    pass

class NotFoundError(IoError, FileNotFoundError):
    pass

class OutOfMemory(Error, MemoryError):
    pass

class BudgetError(OutOfMemory):
    @property
    def smallest_bytes(self) -> int | None: ...
    @property
    def sizes(self) -> dict[str, int]: ...

class NotSupported(Error, NotImplementedError):
    pass

class StateError(Error, RuntimeError):
    pass

class OpError(Error, RuntimeError):
    pass

class CycleError(Error, RuntimeError):
    pass

class ReplaceError(Error, RuntimeError):
    pass

class InconsistencyError(Error, RuntimeError):
    pass

class InternalError(Error, RuntimeError):
    pass

class DebugModeError(Error, RuntimeError):
    pass

class InvalidValueError(DebugModeError):
    pass

class PalimpsestWarning(UserWarning):
    pass
