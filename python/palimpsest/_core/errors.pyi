from palimpsest.errors import (
    AliasError as AliasError,
    AssertionError as AssertionError,
    BudgetError as BudgetError,
    CycleError as CycleError,
    DTypeError as DTypeError,
    DebugModeError as DebugModeError,
    DeviceError as DeviceError,
    DisconnectedError as DisconnectedError,
    Error as Error,
    FormatError as FormatError,
    InconsistencyError as InconsistencyError,
    InternalError as InternalError,
    InvalidValueError as InvalidValueError,
    IoError as IoError,
    MissingInputError as MissingInputError,
    NameError as NameError,
    NanGuardError as NanGuardError,
    NotLinearError as NotLinearError,
    NotSupported as NotSupported,
    OpError as OpError,
    OutOfMemory as OutOfMemory,
    OverflowError as OverflowError,
    ReplaceError as ReplaceError,
    ShapeError as ShapeError,
    SplitError as SplitError,
    StateError as StateError,
    TypeError as TypeError,
    UnusedInputError as UnusedInputError,
    ValueError as ValueError
)


# SPDX-License-Identifier: Apache-2.0
