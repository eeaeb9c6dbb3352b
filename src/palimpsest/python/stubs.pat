# SPDX-License-Identifier: Apache-2.0
# For nanobind.stubgen: what stubs begin with, and types that one signature of C++ cannot say.

palimpsest\._core\.(ops|ops\.inplace)\.__prefix__:
    # SPDX-License-Identifier: Apache-2.0
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any
    from palimpsest._core import SolveInfo, Variable
    from palimpsest.typing import ArrayLike, DTypeLike, ShapeLike, VariableLike

palimpsest\._core\.__prefix__:
    # SPDX-License-Identifier: Apache-2.0
    from collections.abc import Callable, Mapping
    from typing import Any, overload
    from numpy.typing import NDArray
    from palimpsest.typing import Array, ArrayLike, ArrayT, DimsLike, DTypeLike, Progress, ShapeLike, VariableLike

palimpsest\._core\.errors\.__prefix__:
    # SPDX-License-Identifier: Apache-2.0

# Those that have the name of a built-in class are derived from it, too.
palimpsest\.errors\.__prefix__:
    # SPDX-License-Identifier: Apache-2.0
    import builtins

palimpsest\.errors\.(AliasError|SplitError|NotLinearError|MissingInputError):
    class \1(Error, builtins.ValueError): ...

palimpsest\.errors\.(ValueError|TypeError|AssertionError):
    class \1(Error, builtins.\1): ...

palimpsest\.errors\.(NameError|OverflowError):
    class \1(ValueError, builtins.\1): ...

palimpsest\._core\.NamedLinop\.__call__:
    @overload
    def __call__(self, x: Variable) -> Variable: ...
    @overload
    def __call__(self, x: ArrayT) -> ArrayT: ...
    @overload
    def __call__(self, x: complex | list[Any] | tuple[Any, ...]) -> NDArray[Any]: ...

palimpsest\._core\.NamedLinop\.__matmul__:
    @overload
    def __matmul__(self, x: NamedLinop) -> NamedLinop: ...
    @overload
    def __matmul__(self, x: Variable) -> Variable: ...
    @overload
    def __matmul__(self, x: ArrayT) -> ArrayT: ...
    @overload
    def __matmul__(self, x: complex | list[Any] | tuple[Any, ...]) -> NDArray[Any]: ...

palimpsest\._core\.NamedLinop\.as_(scipy|pylops|sigpy):
    def as_\1(self, *args: Any, **kwargs: Any) -> Any: ...

palimpsest\._core\.grad$:
    @overload
    def grad(cost: VariableLike, wrt: Variable, *, consider_constant: Sequence[VariableLike] = (), disconnected: str = 'raise', known_grads: object | None = None) -> Variable: ...
    @overload
    def grad(cost: VariableLike, wrt: Sequence[Variable], *, consider_constant: Sequence[VariableLike] = (), disconnected: str = 'raise', known_grads: object | None = None) -> list[Variable]: ...

palimpsest\._core\.__suffix__:
    bool_: DType = ...
