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
    from collections.abc import Callable, Iterator, Mapping
    from os import PathLike
    from typing import Any, overload
    from numpy.typing import NDArray
    from palimpsest.typing import Array, ArrayLike, ArrayT, DimsLike, DTypeLike, Progress, ShapeLike, VariableLike

palimpsest\._core\.errors\.__prefix__:
    # SPDX-License-Identifier: Apache-2.0

# Those that have the name of a built-in class are derived from it, too.
palimpsest\.errors\.__prefix__:
    # SPDX-License-Identifier: Apache-2.0
    import builtins

# Their properties are read from the message.
palimpsest\.errors\.Error$:
    class Error(Exception):
        @property
        def op(self) -> str | None: ...
        @property
        def axis(self) -> int | None: ...
        @property
        def got(self) -> str | None: ...
        @property
        def expected(self) -> str | None: ...

palimpsest\.errors\.BudgetError$:
    class BudgetError(OutOfMemory):
        @property
        def smallest_bytes(self) -> int | None: ...
        @property
        def sizes(self) -> dict[str, int]: ...

palimpsest\.errors\.(AliasError|SplitError|NotLinearError|MissingInputError):
    class \1(Error, builtins.ValueError): ...

palimpsest\.errors\.(ValueError|TypeError|AssertionError):
    class \1(Error, builtins.\1): ...

palimpsest\.errors\.(NameError|OverflowError):
    class \1(ValueError, builtins.\1): ...

# The dtype and the shape of a result are those of the operator.
palimpsest\._core\.NamedLinop\.__call__:
    @overload
    def __call__(self, x: Variable) -> Variable: ...
    @overload
    def __call__(self, x: NDArray[Any]) -> NDArray[Any]: ...
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
    def __matmul__(self, x: NDArray[Any]) -> NDArray[Any]: ...
    @overload
    def __matmul__(self, x: ArrayT) -> ArrayT: ...
    @overload
    def __matmul__(self, x: complex | list[Any] | tuple[Any, ...]) -> NDArray[Any]: ...

palimpsest\._core\.Function\.__signature__:
    @property
    def __signature__(self) -> Any: ...

palimpsest\._core\.NamedLinop\.__init__:
    def __init__(self, ishape: DimsLike | NamedShape = '...', oshape: DimsLike | None = None, /, *, name: str | None = None, sizes: Mapping[str, int] | None = None, **values: Any) -> None: ...

# It collects what a class derived from it defines.
palimpsest\._core\.NamedLinop\.__init_subclass__:
    def __init_subclass__(cls, **options: Any) -> None: ...

palimpsest\._core\.NamedLinop\.__radd__:
    def __radd__(self, other: complex) -> NamedLinop: ...

palimpsest\._core\.NamedLinop\.__dir__:
    def __dir__(self) -> list[str]: ...

# It refuses.
palimpsest\._core\.NamedLinop\.__array__:

palimpsest\._core\.Tensor\.__iter__:
    def __iter__(self) -> Iterator[Tensor]: ...

palimpsest\._core\.Variable\.__iter__:
    def __iter__(self) -> Iterator[Variable]: ...

palimpsest\._core\.Dims\.__iter__:
    def __iter__(self) -> Iterator[NamedDimension]: ...

palimpsest\._core\.(?:MapsResult|CompressedKspace|Reconstruction|Scan|NiftiImage|MrcImage)\.(maps|kspace|matrices|image|data)$:
    @property
    def \1(self) -> Array: ...

palimpsest\._core\.(?:MapsResult|Scan)\.(eigenvalues|mask|trajectory|noise|calibration)$:
    @property
    def \1(self) -> Array | None: ...

palimpsest\._core\.SolveInfo\.x:
    @property
    def x(self) -> Tensor: ...

# Of matplotlib, which need not be installed.
palimpsest\._core\.(?:Plan|History)\.plot:
    def plot(self, ax: Any = None) -> Any: ...

palimpsest\._core\.SharedVariable\.get_value:
    def get_value(self, borrow: bool = False, return_internal_type: bool = False) -> Any: ...

palimpsest\._core\.SharedVariable\.exchange:
    def exchange(self, value: object | None) -> Any: ...

palimpsest\._core\.(?:Variable|Parameter)\.(data|value|grad)$:
    @property
    def \1(self) -> Any: ...

palimpsest\._core\.Variable\.owner:
    @property
    def owner(self) -> _Apply | None: ...

palimpsest\._core\.(?:NamedLinop|SolveResult)\.(sizes|applications)$:
    @property
    def \1(self) -> dict[str, int]: ...

palimpsest\._core\.memory_report:
    def memory_report(A: NamedLinop) -> dict[str, int]: ...

palimpsest\._core\.NamedLinop\.matrix_size:
    def matrix_size(self, input_shape: int | Sequence[int] | None = None) -> tuple[int, int]: ...

palimpsest\._core\.NamedLinop\.matrix$:
    def matrix(self, **kwargs: Any) -> NDArray[Any]: ...

palimpsest\._core\.to_dense:
    def to_dense(A: NamedLinop, *, sizes: Mapping[str, int] | None = None, extents: int | Sequence[int] | None = None, dtype: DTypeLike | None = None) -> NDArray[Any]: ...

palimpsest\._core\.Tensor\.strides:
    @property
    def strides(self) -> tuple[int, ...]: ...

palimpsest\._core\.Tensor\.(item|tolist)$:
    def \1(self) -> Any: ...

palimpsest\._core\.TensorType\.shape:
    @property
    def shape(self) -> tuple[int | None, ...]: ...

palimpsest\._core\.SolveResult\.x:
    @property
    def x(self) -> Array: ...

palimpsest\._core\.Parameter\.(sum|prod|mean|max|min|any|all):
    def \1(self, *args: Any, **kwargs: Any) -> Any: ...

palimpsest\._core\.NamedLinop\.as_(scipy|pylops):
    def as_\1(self, sizes: Mapping[str, int] | None = None, dtype: DTypeLike | None = None) -> Any: ...

palimpsest\._core\.NamedLinop\.as_sigpy:
    def as_sigpy(self, sizes: Mapping[str, int] | None = None) -> Any: ...

palimpsest\._core\.NamedLinop\.as_deepinv:
    def as_deepinv(self, *, pairs: bool = False, **options: Any) -> Any: ...

palimpsest\._core\.NamedLinop\.as_mrpro:
    def as_mrpro(self) -> Any: ...

# Lists, and numbers of bytes, which are converted when the function is called.
palimpsest\._core\.Objective\.__init__:
    def __init__(self, A: NamedLinop, *, W: NamedLinop | None = None, quadratics: Sequence[Quadratic] = (), terms: Sequence[Term | Prox] = (), h: Prox | None = None) -> None: ...

palimpsest\._core\.split_to_budget:
    def split_to_budget(A: NamedLinop, x: TensorType | ArrayLike, budget: int | str, *, candidates: DimsLike = ()) -> BudgetSplit: ...

# They only refuse, and type checkers do so without them.
palimpsest\._core\.Tensor\.__(r?(add|sub|mul|truediv|floordiv|mod|divmod|pow|matmul|and|or|xor|lshift|rshift)|lt|le|gt|ge|neg|pos|abs|invert)__:

palimpsest\._core\.(Variable|Parameter)\.__array_function__:
    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any: ...

# Names that end in an underscore are taken for private ones.
palimpsest\._core\.Tensor\.__suffix__:
    def copy_(self, source: ArrayLike) -> Tensor: ...
    def fill_(self, value: complex) -> Tensor: ...
    def zero_(self) -> Tensor: ...

palimpsest\._core\.grad$:
    @overload
    def grad(cost: VariableLike, wrt: Variable, *, consider_constant: Sequence[VariableLike] = (), disconnected: str = 'raise', known_grads: object | None = None) -> Variable: ...
    @overload
    def grad(cost: VariableLike, wrt: Sequence[Variable], *, consider_constant: Sequence[VariableLike] = (), disconnected: str = 'raise', known_grads: object | None = None) -> list[Variable]: ...

palimpsest\._core\.__suffix__:
    __version__: str
    bool_: DType = ...

    class _Apply:
        @property
        def op_name(self) -> str: ...
        @property
        def inputs(self) -> list[Variable]: ...
        @property
        def outputs(self) -> list[Variable]: ...

    class _FunctionGraph:
        @property
        def inputs(self) -> list[Variable]: ...
        @property
        def outputs(self) -> list[Variable]: ...
        def toposort(self) -> list[_Apply]: ...
        def __len__(self) -> int: ...

    class _Profile:
        @property
        def function(self) -> str: ...
        @property
        def calls(self) -> int: ...
        @property
        def call_seconds(self) -> float: ...
        @property
        def step_seconds(self) -> float: ...
        @property
        def check_seconds(self) -> float: ...
        @property
        def compile_seconds(self) -> float: ...
        def seconds_by_class(self) -> dict[str, float]: ...
        def seconds_by_op(self) -> dict[str, float]: ...
        def summary(self) -> str: ...
        def to_json(self) -> str: ...

    class _Tag:
        indestructible: bool
        nan_guard: bool
        def __getattr__(self, key: str) -> Any: ...
        def __setattr__(self, key: str, value: Any) -> None: ...

    class _Using:
        def __enter__(self) -> None: ...
        def __exit__(self, *args: Any) -> None: ...

    class _Config:
        def __getattr__(self, key: str) -> Any: ...
        def __setattr__(self, key: str, value: Any) -> None: ...
        def using(self, **fields: Any) -> _Using: ...

    # What the package itself calls.
    _begin_linop: Callable[..., None]
    _container_of_value: Callable[..., Any]
    _define_linop: Callable[..., int]
    _function_of_bytes: Callable[..., Function]
    _linop_functions: Callable[[NamedLinop], dict[str, Any]]
    _linop_of_bytes: Callable[..., NamedLinop]
    _make_apply: Callable[..., _Apply]
    _make_linop: Callable[..., NamedLinop]
    _note_origins: Callable[[str], None]
    _parameter_on: Callable[..., Parameter]
    _plan: Callable[..., SolvePlan]
    _smallest_budget: Callable[..., int]
    _prox_of_bytes: Callable[[bytes], Prox]
    _register_op: Callable[[str], None]
    _result_again: Callable[..., Any]
    _set_linop_functions: Callable[[NamedLinop, int], None]
    _shared_on: Callable[..., SharedVariable]
    _show: Callable[[dict[str, Any], str, str], None]
    _storage_of_bytes: Callable[[Any], Storage]
    _tensor_of_storage: Callable[..., Tensor]
    _torch_backing: Callable[[Any], Any]
    _torch_weights: Callable[[Any], Any]
    _torch_weights_of: Callable[[NamedLinop], Any]
    _write_raw_scan: Callable[..., None]

# A slot of the type.
palimpsest\._core\.Function\.__call__$:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
