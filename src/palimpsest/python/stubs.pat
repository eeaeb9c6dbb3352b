# SPDX-License-Identifier: Apache-2.0
# For nanobind.stubgen: what stubs begin with, and types that one signature of C++ cannot say.

palimpsest\._core(\.ops|\.ops\.inplace)?\.__prefix__:
    # SPDX-License-Identifier: Apache-2.0
    from collections.abc import Callable, Mapping
    from typing import Any, overload
    from numpy.typing import NDArray
    from palimpsest.typing import Array, ArrayLike, ArrayT, DimsLike, DTypeLike, Progress, ShapeLike, VariableLike

palimpsest\.(_core\.)?errors\.__prefix__:
    # SPDX-License-Identifier: Apache-2.0

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

palimpsest\._core\.grad:
    @overload
    def grad(cost: VariableLike, wrt: Variable, *, consider_constant: Sequence[VariableLike] = (), disconnected: str = 'raise', known_grads: object | None = None) -> Variable: ...
    @overload
    def grad(cost: VariableLike, wrt: Sequence[Variable], *, consider_constant: Sequence[VariableLike] = (), disconnected: str = 'raise', known_grads: object | None = None) -> list[Variable]: ...
