# SPDX-License-Identifier: Apache-2.0
"""The cases of run_all: the same computation in Palimpsest and in each peer that is installed.

A case makes its data when it is run. Ours writes into the caller's array or lends its result, as
peers do where they can (out=). Peers that cannot be imported are left out.
"""

import importlib

import numpy as np

import palimpsest as ps
import palimpsest.ops as pt


def module(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


scipy = module("scipy")
torch = module("torch")
jax = module("jax")
pytensor = module("pytensor")
finufft = module("finufft")
pywt = module("pywt")
if jax is not None:
    jax.config.update("jax_enable_x64", True)  # float64 stays float64


class Case:
    """`make` returns a dict of contestants, "ours" among them."""

    def __init__(self, name, make, tolerance=1e-4):
        self.name, self.contestants, self.tolerance = name, make, tolerance

    @staticmethod
    def to_numpy(x):
        if isinstance(x, (list, tuple)):
            x = x[0]
        if torch is not None and isinstance(x, torch.Tensor):
            return x.detach().numpy()
        return np.asarray(x)


def random(shape, dtype):
    draw = np.random.default_rng(1)
    x = draw.uniform(0.2, 1.2, shape)
    if np.issubdtype(dtype, np.complexfloating):
        x = x + 1j * draw.uniform(-1, 1, shape)
    return x.astype(dtype)


def compiled(expression, arrays):
    # An axis broadcasts if it is known to be 1 in the graph.
    inputs = [pt.tensor(str(a.dtype), tuple(1 if n == 1 else None for n in a.shape)) for a in arrays]
    f = ps.function(inputs, ps.Out(expression(*inputs), borrow=True))
    tensors = [ps.asarray(a) for a in arrays]
    return lambda: f(*tensors)


def of_arrays(name, shapes, dtype, ours, numpy=None, torches=None, jaxes=None, tensors=None,
              tolerance=1e-4):
    """The same expression of arrays everywhere; None: that peer has none."""

    def make():
        arrays = [random(shape, dtype) for shape in shapes]
        calls = {"ours": compiled(ours, arrays)}
        if numpy is not None:
            calls["NumPy"] = lambda: numpy(*arrays)
        if torch is not None and torches is not None:
            there = [torch.from_numpy(a) for a in arrays]
            calls["torch"] = lambda: torches(*there)
        if jax is not None and jaxes is not None:
            jitted, device = jax.jit(jaxes), [jax.numpy.asarray(a) for a in arrays]
            calls["jax"] = lambda: jitted(*device).block_until_ready()
        if pytensor is not None and tensors is not None:
            symbols = [pytensor.tensor.TensorType(
                str(a.dtype), tuple(1 if n == 1 else None for n in a.shape))() for a in arrays]
            f = pytensor.function(symbols, pytensor.Out(tensors(*symbols), borrow=True))
            calls["PyTensor"] = lambda: f(*arrays)
        return calls

    return Case(name, make, tolerance)


SIZES = {"1e4": 10_000, "1e5": 100_000, "1e6": 1_000_000}
FUNCTIONS = ["exp", "log", "sin", "cos", "tan", "tanh", "sqrt", "expm1", "log1p"]


def elementwise_cases():
    jnp = jax.numpy if jax is not None else None
    for label, n in SIZES.items():
        yield of_arrays(f"a+b float32 {label}", [n, n], np.float32, lambda a, b: a + b, np.add,
                        torch and torch.add, jnp and jnp.add, lambda a, b: a + b)

        def chain(a, b, c, d):
            return ((((a * b + c) * d - a) * b + d) * c - b) * a + c

        yield of_arrays(f"10 ops float32 {label}", [n] * 4, np.float32, chain, chain, chain, chain, chain)
        yield of_arrays(f"a conj(b) + 2c complex64 {label}", [n] * 3, np.complex64,
                        lambda a, b, c: a * pt.conj(b) + 2 * c, lambda a, b, c: a * np.conj(b) + 2 * c,
                        torch and (lambda a, b, c: a * b.conj() + 2 * c),
                        jnp and (lambda a, b, c: a * jnp.conj(b) + 2 * c))
        for name in FUNCTIONS:
            for dtype in (np.float32, np.float64):
                yield of_arrays(f"{name} {np.dtype(dtype).name} {label}", [n], dtype, getattr(pt, name),
                                getattr(np, name), torch and getattr(torch, name),
                                jnp and getattr(jnp, name))
        yield of_arrays(f"x^2.5 float32 {label}", [n], np.float32, lambda x: x**2.5, lambda x: x**2.5,
                        lambda x: x**2.5, lambda x: x**2.5)
        yield of_arrays(f"1/(1+exp(-ab)) float32 {label}", [n, n], np.float32,
                        lambda a, b: 1 / (1 + pt.exp(-(a * b))), lambda a, b: 1 / (1 + np.exp(-(a * b))),
                        torch and (lambda a, b: 1 / (1 + torch.exp(-(a * b)))),
                        jnp and (lambda a, b: 1 / (1 + jnp.exp(-(a * b)))))
        for name in ("exp", "sqrt", "angle"):
            yield of_arrays(f"{name} complex64 {label}", [n], np.complex64, getattr(pt, name),
                            getattr(np, name), torch and getattr(torch, name), jnp and getattr(jnp, name))
        yield of_arrays(f"where(a<b,a,c) float32 {label}", [n] * 3, np.float32,
                        lambda a, b, c: pt.where(a < b, a, c), lambda a, b, c: np.where(a < b, a, c),
                        torch and (lambda a, b, c: torch.where(a < b, a, c)),
                        jnp and (lambda a, b, c: jnp.where(a < b, a, c)))
        yield of_arrays(f"float32 to int32 {label}", [n], np.float32, lambda x: pt.cast(x, "int32"),
                        lambda x: x.astype(np.int32), torch and (lambda x: x.to(torch.int32)),
                        jnp and (lambda x: x.astype(jnp.int32)))


def more_elementwise_cases():
    """Other dtypes, products, comparisons and functions, at 1e5 and 1e6 elements."""
    jnp = jax.numpy if jax is not None else None

    def of(name, n, shapes, dtype, ours, theirs=None, of_torch=None, of_jax=None):
        """`theirs` of NumPy; the names of the others' functions are the same unless given."""
        return of_arrays(f"{name} {np.dtype(dtype).name} {n:.0e}".replace("e+0", "e"), shapes, dtype, ours,
                         theirs, of_torch, of_jax)

    for n in (100_000, 1_000_000):
        for dtype in (np.float64, np.complex64, np.complex128):
            yield of("a+b", n, [n, n], dtype, lambda a, b: a + b, np.add, torch and torch.add, jnp and jnp.add)
            yield of("a*b", n, [n, n], dtype, lambda a, b: a * b, np.multiply, torch and torch.mul,
                     jnp and jnp.multiply)
        yield of("a/b", n, [n, n], np.float32, lambda a, b: a / b, np.divide, torch and torch.div,
                 jnp and jnp.divide)
        for dtype in (np.float32, np.complex64):
            yield of("abs", n, [n], dtype, pt.abs, np.abs, torch and torch.abs, jnp and jnp.abs)
        yield of("x+1.5y", n, [n, n], np.complex64, lambda a, b: a + 1.5 * b, lambda a, b: a + np.float32(1.5) * b,
                 torch and (lambda a, b: torch.add(a, b, alpha=1.5)), jnp and (lambda a, b: a + jnp.float32(1.5) * b))
        yield of("a<b", n, [n, n], np.float32, lambda a, b: a < b, np.less, torch and torch.lt, jnp and jnp.less)
        yield of("maximum", n, [n, n], np.float32, pt.maximum, np.maximum, torch and torch.maximum,
                 jnp and jnp.maximum)
        yield of("clip", n, [n], np.float32, lambda a: pt.clip(a, 0.3, 0.9),
                 lambda a: np.clip(a, np.float32(0.3), np.float32(0.9)), torch and (lambda a: torch.clamp(a, 0.3, 0.9)),
                 jnp and (lambda a: jnp.clip(a, 0.3, 0.9)))
    n = 100_000
    for name in ("log2", "log10", "sinh", "cosh", "arctan"):
        for dtype in (np.float32, np.float64):
            yield of(name, n, [n], dtype, getattr(pt, name), getattr(np, name), torch and getattr(torch, name),
                     jnp and getattr(jnp, name))
    for dtype in (np.float32, np.float64):
        yield of("arctan2", n, [n, n], dtype, pt.arctan2, np.arctan2, torch and torch.arctan2, jnp and jnp.arctan2)
        yield of("sigmoid", n, [n], dtype, pt.sigmoid, scipy and importlib.import_module("scipy.special").expit,
                 torch and torch.sigmoid, jax and jax.nn.sigmoid)
        yield of("erf", n, [n], dtype, pt.erf, scipy and importlib.import_module("scipy.special").erf,
                 torch and torch.erf, jax and jax.scipy.special.erf)
    for start, end in ((np.float64, np.float32), (np.float32, np.float64), (np.complex128, np.complex64)):
        name = np.dtype(end).name
        yield of(f"to {name} from", 1_000_000, [1_000_000], start, lambda x, name=name: pt.cast(x, name),
                 lambda x, end=end: x.astype(end), torch and (lambda x, name=name: x.to(getattr(torch, name))),
                 jnp and (lambda x, end=end: x.astype(end)))


def more_array_cases():
    """Joins, pads, shifts, broadcast products and reductions along either axis."""
    jnp = jax.numpy if jax is not None else None
    square = (1024, 1024)
    for axis in (0, 1):
        yield of_arrays(f"concatenate axis {axis} complex64 1024^2", [square, square], np.complex64,
                        lambda a, b, k=axis: pt.concatenate([a, b], k), lambda a, b, k=axis: np.concatenate([a, b], k),
                        torch and (lambda a, b, k=axis: torch.cat([a, b], k)),
                        jnp and (lambda a, b, k=axis: jnp.concatenate([a, b], k)))
        yield of_arrays(f"mean axis {axis} float32 2048^2", [(2048, 2048)], np.float32,
                        lambda x, k=axis: pt.mean(x, k), lambda x, k=axis: np.mean(x, k),
                        torch and (lambda x, k=axis: torch.mean(x, k)), jnp and (lambda x, k=axis: jnp.mean(x, k)))
        yield of_arrays(f"sum axis {axis} complex64 1024^2", [square], np.complex64,
                        lambda x, k=axis: pt.sum(x, k), lambda x, k=axis: np.sum(x, k),
                        torch and (lambda x, k=axis: torch.sum(x, k)), jnp and (lambda x, k=axis: jnp.sum(x, k)))
        yield of_arrays(f"sum axis {axis} float64 1024^2", [square], np.float64,
                        lambda x, k=axis: pt.sum(x, k), lambda x, k=axis: np.sum(x, k),
                        torch and (lambda x, k=axis: torch.sum(x, k)), jnp and (lambda x, k=axis: jnp.sum(x, k)))
        yield of_arrays(f"flip axis {axis} complex64 1024^2", [square], np.complex64,
                        lambda x, k=axis: pt.flip(x, k) + 0,
                        lambda x, k=axis: np.flip(x, k).copy(), torch and (lambda x, k=axis: torch.flip(x, (k,))))
    yield of_arrays("pad by 64 complex64 1024^2", [square], np.complex64, lambda x: pt.pad(x, 64),
                    lambda x: np.pad(x, 64), torch and (lambda x: torch.nn.functional.pad(x, (64, 64, 64, 64))))
    yield of_arrays("fftshift complex64 1024^2", [square], np.complex64, pt.fftshift, np.fft.fftshift,
                    torch and torch.fft.fftshift)
    yield of_arrays("permute complex64 64x128x256", [(64, 128, 256)], np.complex64,
                    lambda x: pt.transpose(x, (2, 0, 1)) + 0, lambda x: np.ascontiguousarray(x.transpose(2, 0, 1)),
                    torch and (lambda x: x.permute(2, 0, 1).contiguous()))
    yield of_arrays("a + transpose(b) float32 2048^2", [(2048, 2048)] * 2, np.float32,
                    lambda a, b: a + pt.transpose(b), lambda a, b: a + b.T, torch and (lambda a, b: a + b.T),
                    jnp and (lambda a, b: a + b.T))
    coils = (8, 512, 512)
    yield of_arrays("maps times image complex64 8x512^2", [coils, coils[1:]], np.complex64, lambda s, x: s * x,
                    np.multiply, torch and torch.mul, jnp and jnp.multiply)
    yield of_arrays("sum of conj(maps) x complex64 8x512^2", [coils, coils], np.complex64,
                    lambda s, x: pt.sum(pt.conj(s) * x, 0), lambda s, x: np.sum(np.conj(s) * x, 0),
                    torch and (lambda s, x: torch.sum(s.conj() * x, 0)),
                    jnp and (lambda s, x: jnp.sum(jnp.conj(s) * x, 0)))
    yield of_arrays("root of sum of squares complex64 8x512^2", [coils], np.complex64,
                    lambda x: pt.sqrt(pt.sum(pt.abs2(x), 0)), lambda x: np.sqrt(np.sum(np.abs(x) ** 2, 0)),
                    torch and (lambda x: torch.linalg.vector_norm(x, dim=0)),
                    jnp and (lambda x: jnp.linalg.norm(x, axis=0)))
    for dtype in (np.float32, np.complex64):
        name = np.dtype(dtype).name
        yield of_arrays(f"norm {name} 1e6", [1_000_000], dtype, pt.norm, np.linalg.norm,
                        torch and torch.linalg.vector_norm, jnp and jnp.linalg.norm)
        yield of_arrays(f"vdot {name} 1e6", [1_000_000] * 2, dtype, pt.vdot, np.vdot, torch and torch.vdot,
                        jnp and jnp.vdot)
    yield of_arrays("softmax rows float32 4096x1024", [(4096, 1024)], np.float32,
                    lambda x: pt.softmax(x, 1), None,
                    torch and (lambda x: torch.softmax(x, 1)), jax and (lambda x: jax.nn.softmax(x, 1)))
    yield of_arrays("min all float64 1e6", [1_000_000], np.float64, pt.min, np.min, torch and torch.min,
                    jnp and jnp.min)
    yield take_case()


def take_case():
    def make():
        rows = np.random.default_rng(4).integers(0, 100_000, 50_000)
        x = random((100_000, 16), np.float32)
        calls = {"ours": compiled(lambda a: pt.take(a, rows, 0), [x]), "NumPy": lambda: np.take(x, rows, 0)}
        if torch is not None:
            there, chosen = torch.from_numpy(x), torch.from_numpy(rows)
            calls["torch"] = lambda: torch.index_select(there, 0, chosen)
        return calls

    return Case("take 5e4 rows of 16 float32", make)


def array_cases():
    jnp = jax.numpy if jax is not None else None
    yield of_arrays("transpose float32 2048^2", [(2048, 2048)], np.float32,
                    lambda x: pt.transpose(x) + 0, lambda x: np.ascontiguousarray(x.T),
                    torch and (lambda x: x.T.contiguous()))
    yield of_arrays("flip both axes float32 2048^2", [(2048, 2048)], np.float32, lambda x: x[::-1, ::-1] + 0,
                    lambda x: x[::-1, ::-1].copy(), torch and (lambda x: torch.flip(x, (0, 1))))
    yield of_arrays("roll float32 2048^2", [(2048, 2048)], np.float32, lambda x: pt.roll(x, 100, 1),
                    lambda x: np.roll(x, 100, 1), torch and (lambda x: torch.roll(x, 100, 1)))
    yield of_arrays("(n,1)+(1,n) float32 2000", [(2000, 1), (1, 2000)], np.float32, lambda a, b: a + b,
                    np.add, torch and torch.add, jnp and jnp.add)
    for name, axes in (("all", None), ("axis 0", 0), ("axis 1", 1)):
        for op, of_torch in (("sum", "sum"), ("max", "amax")):
            yield of_arrays(f"{op} {name} float32 2048^2", [(2048, 2048)], np.float32,
                            lambda x, op=op, a=axes: getattr(pt, op)(x, a),
                            lambda x, op=op, a=axes: getattr(np, op)(x, a),
                            torch and (lambda x, op=of_torch, a=axes:
                                       getattr(torch, op)(x, (0, 1) if a is None else a)))
    yield of_arrays("argmax rows float32 2048^2", [(2048, 2048)], np.float32, lambda x: pt.argmax(x, 1),
                    lambda x: np.argmax(x, 1), torch and (lambda x: torch.argmax(x, 1)))
    yield of_arrays("cumsum float32 1e6", [1_000_000], np.float32, lambda x: pt.cumsum(x, 0), np.cumsum,
                    torch and (lambda x: torch.cumsum(x, 0)), tolerance=1e-3)
    yield of_arrays("logsumexp rows float32 4096x1024", [(4096, 1024)], np.float32,
                    lambda x: pt.logsumexp(x, 1), None, torch and (lambda x: torch.logsumexp(x, 1)))
    yield of_arrays("var of rows float32 4096x1024", [(4096, 1024)], np.float32, lambda x: pt.var(x, 1),
                    lambda x: np.var(x, 1), torch and (lambda x: torch.var(x, 1, correction=0)))


def transform_cases():
    for shape in ((8, 256, 256), (8, 320, 320), (8, 180, 210), (8, 211, 211), (4096, 256)):
        axes = (-1,) if len(shape) == 2 else (-2, -1)
        yield of_arrays(f"fft complex64 {'x'.join(map(str, shape))}", [shape], np.complex64,
                        lambda x, a=axes: pt.fft(x, a, norm="backward"),
                        scipy and (lambda x, a=axes: importlib.import_module("scipy.fft").fftn(x, axes=a)),
                        torch and (lambda x, a=axes: torch.fft.fftn(x, dim=a)))
    for shape, axes, dtype in (((128, 128, 128), (0, 1, 2), np.complex64), ((1 << 20,), (0,), np.complex64),
                               ((512, 512), (0,), np.complex64), ((8, 256, 256), (1, 2), np.complex128)):
        yield of_arrays(f"fft {np.dtype(dtype).name} {'x'.join(map(str, shape))} axes {axes}", [shape], dtype,
                        lambda x, a=axes: pt.fft(x, a, norm="backward"),
                        scipy and (lambda x, a=axes: importlib.import_module("scipy.fft").fftn(x, axes=a)),
                        torch and (lambda x, a=axes: torch.fft.fftn(x, dim=a)))
    yield of_arrays("rfft float32 8x512x512", [(8, 512, 512)], np.float32,
                    lambda x: pt.rfft(pt.specify_shape(x, (8, 512, 512)), (-2, -1), norm="backward"),
                    scipy and (lambda x: importlib.import_module("scipy.fft").rfft2(x)),
                    torch and (lambda x: torch.fft.rfft2(x)))
    shifted = importlib.import_module("scipy.fft") if scipy else None
    yield of_arrays("centered fft complex64 8x256x256", [(8, 256, 256)], np.complex64,
                    lambda x: pt.fft(x, (-2, -1), norm="backward", centered=True),
                    shifted and (lambda x: shifted.fftshift(shifted.fft2(shifted.ifftshift(x, (1, 2))), (1, 2))),
                    torch and (lambda x: torch.fft.fftshift(torch.fft.fft2(torch.fft.ifftshift(x, (1, 2))), (1, 2))))
    for ndim, size, points, eps in ((2, 512, 1_000_000, 1e-3), (2, 64, 10_000, 1e-3), (3, 64, 200_000, 1e-3),
                                    (2, 512, 1_000_000, 1e-5)):
        for adjoint in (False, True):
            yield nufft_case(ndim, size, points, eps, adjoint)


def nufft_case(ndim, size, points, eps, adjoint):
    """Both sides with the same promise; the table's notes show if they differ by more than it."""

    def make():
        draw = np.random.default_rng(2)
        shape = (size,) * ndim
        x = random(points if adjoint else shape, np.complex64)
        locs = draw.uniform(-size / 2, size / 2, (points, ndim)).astype(np.float32)
        operator = ps.Nufft(locs, shape, "K", eps=eps)
        if adjoint:
            operator = operator.H
        tensor = ps.asarray(x)
        calls = {"ours": lambda: operator(tensor)}
        if finufft is not None:
            plan = finufft.Plan(1 if adjoint else 2, shape, eps=eps, isign=1 if adjoint else -1,
                                dtype="complex64")
            radians = (locs * np.float32(2 * np.pi / size)).astype(np.float32)
            plan.setpts(*[np.ascontiguousarray(radians[:, d]) for d in range(ndim)])
            scale = np.float32(size ** (-ndim / 2))
            calls["FINUFFT"] = lambda: plan.execute(x) * scale
        return calls

    name = "adjoint nufft" if adjoint else "nufft"
    return Case(f"{name} {ndim}-D {size} {points} points {eps:g}", make, tolerance=10 * eps)


def product_cases():
    for n in (256, 1024):
        for dtype in (np.float32, np.complex64):
            yield of_arrays(f"matmul {np.dtype(dtype).name} {n}", [(n, n), (n, n)], dtype, pt.matmul,
                            np.matmul, torch and torch.matmul)
    for n, dtype in ((256, np.float64), (512, np.complex128)):
        yield of_arrays(f"matmul {np.dtype(dtype).name} {n}", [(n, n), (n, n)], dtype, pt.matmul, np.matmul,
                        torch and torch.matmul)
    for dtype in (np.float32, np.complex64):
        yield of_arrays(f"gemv {np.dtype(dtype).name} 2048", [(2048, 2048), 2048], dtype, pt.matmul, np.matmul,
                        torch and torch.matmul)
    yield of_arrays("Gram matrix complex64 1e5x16", [(100_000, 16)], np.complex64,
                    lambda a: pt.einsum("ki,kj->ij", pt.conj(a), a), lambda a: a.conj().T @ a,
                    torch and (lambda a: a.mH @ a))
    for n in (4, 8, 16):
        for dtype in (np.float32, np.complex64):
            shape = (1_000_000 // (n * n), n, n)
            yield of_arrays(f"batched {n}x{n} {np.dtype(dtype).name}", [shape, shape], dtype, pt.matmul,
                            np.matmul, torch and torch.matmul)
    yield of_arrays("batched matrix-vector 8x8 float32", [(30_000, 8, 8), (30_000, 8)], np.float32,
                    lambda a, x: pt.einsum("bij,bj->bi", a, x), lambda a, x: np.einsum("bij,bj->bi", a, x),
                    torch and (lambda a, x: torch.einsum("bij,bj->bi", a, x)))
    yield of_arrays("transposed gemv float32 4096", [(4096, 4096), 4096], np.float32,
                    lambda a, x: pt.einsum("ij,i->j", a, x), lambda a, x: a.T @ x,
                    torch and (lambda a, x: a.T @ x))
    yield sparse_case()
    yield kronecker_case()


def sparse_case():
    def make():
        rows, per_row = 100_000, 10
        draw = np.random.default_rng(3)
        column = draw.integers(0, rows, rows * per_row, dtype=np.int32)  # as SciPy holds them
        start = np.arange(0, rows * per_row + 1, per_row)
        values, x = random(rows * per_row, np.float32), random(rows, np.float32)
        A = ps.Sparse(values, column, start, rows)
        tensor = ps.asarray(x)
        calls = {"ours": lambda: A(tensor)}
        if scipy is not None:
            matrix = importlib.import_module("scipy.sparse").csr_matrix((values, column, start), (rows, rows))
            calls["SciPy"] = lambda: matrix @ x
        return calls

    return Case("sparse 1e5 rows of 10 float32", make)


def kronecker_case():
    def make():
        a, b, x = (random((256, 256), np.float32) for _ in range(3))
        K = ps.Kronecker(ps.Dense(a, "MN,N->M"), ps.Dense(b, "PQ,Q->P"))
        tensor = ps.asarray(x)
        return {"ours": lambda: K(tensor), "NumPy": lambda: a @ x @ b.T}

    return Case("Kronecker of 256^2 float32", make)


def operator_cases():
    def wavelet():
        x = random((1024, 1024), np.float32)
        W = ps.Wavelet("YX", "YX", family="db4", levels=4)
        tensor = ps.asarray(x)
        calls = {"ours": lambda: W(tensor)}
        if pywt is not None:
            # The coefficients are arranged differently: only times are comparable.
            calls["PyWavelets"] = lambda: pywt.wavedec2(x, "db4", mode="periodization", level=4)
        return calls

    yield Case("wavelet db4 1024^2", wavelet, tolerance=float("inf"))
    yield of_arrays("difference along x float32 2048^2", [(2048, 2048)], np.float32,
                    lambda x: pt.roll(x, -1, 1) - x, lambda x: np.roll(x, -1, 1) - x,
                    torch and (lambda x: torch.roll(x, -1, 1) - x))


def all_cases():
    if torch is not None:
        torch.set_num_threads(max(1, torch.get_num_threads()))
    operators = importlib.import_module("peer_operators")
    families = (elementwise_cases, more_elementwise_cases, array_cases, more_array_cases, transform_cases,
                product_cases, operator_cases, operators.sigpy_cases, operators.pylops_cases,
                operators.solver_cases)
    return [case for family in families for case in family()]
