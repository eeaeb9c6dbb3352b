# SPDX-License-Identifier: Apache-2.0
"""Gradients of torch through operators and functions."""

import copy
import gc
import threading
import weakref

import numpy as np
import pytest

import palimpsest as ps

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

RNG = np.random.default_rng(3)
W = RNG.normal(size=(3, 4)) + 1j * RNG.normal(size=(3, 4))
check, check2 = torch.autograd.gradcheck, torch.autograd.gradgradcheck


# torch warns of a use of its own when it begins with it.
of_torch = pytest.mark.filterwarnings("ignore:.*torch.jit.script:FutureWarning")


def learned(*shape, dtype=torch.float64, requires_grad=True):
    generator = torch.Generator().manual_seed(len(shape) + sum(shape))
    return torch.nn.Parameter(torch.randn(shape, dtype=dtype, generator=generator),
                              requires_grad=requires_grad)


def needing(*shape, dtype=torch.complex128):
    return learned(*shape, dtype=dtype).detach().clone().requires_grad_()


def test_results_are_tensors_over_the_memory_that_was_made():
    A = ps.Dense(W, "MN,N->M")
    x = torch.ones(4, dtype=torch.complex128)
    with ps.CopyStats() as copies:
        y = A(x)
    assert isinstance(y, torch.Tensor) and not y.requires_grad
    assert copies.copies + copies.import_copies == 0
    np.testing.assert_allclose(y, W.sum(axis=1))
    assert A(x.conj()).dtype == torch.complex128  # the conjugation is pending: torch has not applied it
    np.testing.assert_allclose(ps.asarray((1j * x).conj()).numpy(), np.full(4, -1j))


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize("part", [lambda A: A, lambda A: A.H, lambda A: A.N, lambda A: 2j * A])
def test_gradients_of_an_argument(dtype, part):
    A = part(ps.Dense(W, "MN,N->M"))
    x = needing(A.matrix_size()[1], dtype=dtype)
    assert check(A, x) and check2(A, x)


OPERATORS = {
    "diagonal": lambda w: ps.Diagonal(w, "N"),
    "chain": lambda w: ps.Diagonal(w, "N") | ps.Dense(W, "MN,N->M"),
    "between": lambda w: ps.Fft(1, batch=(), grid=("N", "K")) | ps.Diagonal(w, "K"),
    "twice": lambda w: ps.Diagonal(w, "N") @ ps.Diagonal(w, "N"),
    "sum": lambda w: ps.Diagonal(w, "N") + 2 * ps.Diagonal(w, "N").H,
    "normal": lambda w: (ps.Diagonal(w, "N") | ps.Dense(W, "MN,N->M")).N,
    "adjoint": lambda w: (ps.Diagonal(w, "N") | ps.Fft(1, batch=(), grid=("N", "K"))).H,
    "convolution": lambda w: ps.Convolution(w, grid="N", batch=()),
    "tile": lambda w: ps.Diagonal(w, "N").split({"N": slice(1, 4)}),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("kind", ["real", "complex"])
def test_gradients_of_parameters_of_any_order(name, kind):
    dtype = torch.float64 if kind == "real" else torch.complex128
    w = learned(4, dtype=dtype)
    A = OPERATORS[name](w)
    x = needing(3 if name == "tile" else 4)
    assert check(lambda x, w: A(x), (x, w)), "first"
    assert check2(lambda x, w: A(x), (x, w)), "second"


def test_third_derivatives():
    w, x = learned(3), needing(3, dtype=torch.float64)
    A = ps.Diagonal(w, "N")

    def cube(x, w):
        y = (A(x) ** 3).sum()
        (g,) = torch.autograd.grad(y, w, create_graph=True)
        (gg,) = torch.autograd.grad(g.sum(), x, create_graph=True)
        return gg

    (found,) = torch.autograd.grad(cube(x, w).sum(), w)
    # y = w^3 x^3: d3/(dw dx dw) summed over elements is 18 w x^2.
    torch.testing.assert_close(found, 18 * w.detach() * x.detach() ** 2)


def test_a_leaf_gets_its_gradient_and_steps_are_seen():
    w = learned(4)
    A = ps.Diagonal(w, "N")
    assert A.weight.trainable and A.weight.data_ptr() == w.data_ptr()
    assert A.weight.grad is None
    x = torch.arange(4.0, dtype=torch.float64)
    A(x).sum().backward()
    torch.testing.assert_close(w.grad, x)
    assert A.weight.grad is w.grad
    N = (A | ps.Fft(1, batch=(), grid=("N", "K"))).N
    before = N(x)
    with torch.no_grad():
        w.mul_(2)
    for B, factor in ((A, 2), (A.H, 2), (N, 4)):
        expected = w.detach() * x if factor == 2 else before * 4
        torch.testing.assert_close(B(x).detach(), expected.detach())
    np.testing.assert_allclose(A(x.numpy()), (w.detach() * x).numpy())


def test_derived_parameters_follow_the_steps_of_an_optimizer():
    w = learned(3)
    C = ps.Convolution(w, grid="N", batch=())
    toeplitz = C.N
    x = np.ones(8)
    before = toeplitz(x)
    version = C.kernel.version
    torch.optim.SGD([w], lr=1.0)
    with torch.no_grad():
        w.mul_(3)
    np.testing.assert_allclose(toeplitz(x), 9 * before)
    assert C.kernel.version > version
    w.data = torch.zeros(3, dtype=torch.float64)  # other memory
    assert not toeplitz(x).any() and C.kernel.data_ptr() == w.data_ptr()
    w.data = torch.zeros(4, dtype=torch.float64)
    with pytest.raises(ps.StateError, match="another dtype or shape"):
        C(x)


def test_setting_a_value_writes_the_memory_of_torch():
    w = learned(2)
    A = ps.Diagonal(w, "N")
    version = w._version
    A.weight.set_value(np.array([5.0, 6.0]))
    assert w.tolist() == [5, 6] and w._version > version
    with pytest.raises(ps.ShapeError):
        A.weight.set_value(np.ones(3))
    assert A.weight.data_ptr() == w.data_ptr()


def test_one_tensor_is_one_parameter():
    w = learned(2)
    A, B = ps.Diagonal(w, "N"), ps.Diagonal(w, "M")
    assert A.weight is B.weight
    frozen = learned(2, requires_grad=False)
    C = ps.Diagonal(frozen, "N")
    assert not C.weight.trainable and C.weight.data_ptr() == frozen.data_ptr()
    assert not C(torch.ones(2, dtype=torch.float64)).requires_grad


def test_parameters_that_are_computed_pass_gradients_on():
    raw = learned(4)
    w = torch.nn.functional.softplus(raw)
    A = ps.Diagonal(w, "N")
    A(torch.ones(4, dtype=torch.float64)).sum().backward()
    torch.testing.assert_close(raw.grad, torch.sigmoid(raw.detach()))
    one = learned(1)
    B = ps.Diagonal(one.expand(4), "N")
    B(torch.ones(4, dtype=torch.float64)).sum().backward()
    torch.testing.assert_close(one.grad, torch.full((1,), 4.0, dtype=torch.float64))
    z = learned(3, dtype=torch.complex128)
    C = ps.Diagonal(z.conj(), "N")
    C(torch.full((3,), 1j, dtype=torch.complex128)).real.sum().backward()
    torch.testing.assert_close(z.grad, torch.full((3,), 1j, dtype=torch.complex128))


def test_in_place_changes_between_forward_and_backward_are_found():
    w = learned(3)
    A = ps.Diagonal(w, "N")
    y = A(needing(3, dtype=torch.float64))
    with torch.no_grad():
        w.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_nothing_is_detached_silently():
    x = needing(4)
    f = ps.function([v := ps.zvector("v")], v * 2)
    for call in (lambda: f(x), lambda: ps.asarray(x),
                 lambda: ps.conjugate_gradients(ps.Identity("N"), x),
                 lambda: ps.function([ps.In(v, borrow=True)], v * 2)(x),
                 lambda: ps.function([v], v * 2, trust_input=True)(x)):
        with pytest.raises(TypeError, match=r"detach\(\) first"):
            call()
    with torch.no_grad():
        assert f(x).tolist() == (2 * x).tolist()
        assert not ps.Identity("N")(x).requires_grad
    assert f(x.detach()).dtype == torch.complex128


def test_backward_copies_nothing():
    w = learned(4, dtype=torch.complex128)
    A = ps.Diagonal(w, "N") | ps.Dense(W, "MN,N->M")
    x = needing(4)
    A(x).abs().sum().backward()  # compiles
    cotangent = torch.ones(3, dtype=torch.complex128)
    y = A(x)
    with ps.CopyStats() as copies:
        y.backward(cotangent)
    assert copies.copies + copies.import_copies == 0


def test_setters_are_seen_by_gradients():
    w = learned(3)
    A = ps.Diagonal(w, "N")
    x = torch.ones(3, dtype=torch.float64)
    A(x).sum().backward()
    other = learned(3)
    A.weight = other
    A(2 * x).sum().backward()
    torch.testing.assert_close(other.grad, 2 * x)
    torch.testing.assert_close(w.grad, x)


@pytest.mark.parametrize("part", [lambda A: A, lambda A: A.H, lambda A: A.N])
def test_what_is_not_used_any_more_is_let_go(part):
    w = learned(3)
    A = part(ps.Diagonal(w, "N") | ps.Fft(1, batch=(), grid=("N", "K")))
    check2(lambda x, w: A(x), (needing(3), w))
    A(needing(3)).abs().sum().backward()
    gone_operator, gone_tensor = weakref.ref(A), weakref.ref(w)
    del A, w
    gc.collect()
    assert gone_operator() is None and gone_tensor() is None


# -- functions ----------------------------------------------------------------------------------


def test_functions_have_gradients_of_any_order():
    x, y = ps.dvector("x"), ps.dvector("y")
    f = ps.torch.wrap(ps.function([x, y], [ps.ops.exp(x) * y, ps.ops.sum(x * y**2)]))
    args = (needing(3, dtype=torch.float64), needing(3, dtype=torch.float64))
    assert check(f, args) and check2(f, args)
    single = ps.torch.wrap(ps.function([x], ps.ops.sin(x)))
    assert single(args[0]).shape == (3,)
    (named,) = ps.torch.wrap(ps.function([x], {"s": ps.ops.sum(x)})).__call__(args[0]).items()
    assert named[0] == "s" and named[1].requires_grad
    z = ps.zvector("z")
    g = ps.torch.wrap(ps.function([z], ps.ops.abs(z) ** 2 * ps.ops.exp(z)))
    assert check(g, needing(3)) and check2(g, needing(3))


def test_functions_learn_the_parameters_of_operators():
    w = learned(4)
    A = ps.Diagonal(w, "N")
    x = ps.tensor("float64", (4,), "x")
    f = ps.torch.wrap(ps.function([x], ps.ops.sum(A(x) ** 2)))
    v = needing(4, dtype=torch.float64)
    assert check(lambda v, w: f(v), (v, w)) and check2(lambda v, w: f(v), (v, w))


def test_outputs_that_need_no_gradient():
    x = ps.dvector("x")
    f = ps.torch.wrap(ps.function([x], [x * 2, ps.ops.argmax(x), x > 0]))
    a, b, c = f(needing(3, dtype=torch.float64))
    assert a.requires_grad and not b.requires_grad and c.dtype == torch.bool
    a.sum().backward()


def test_wrap_refuses_functions_with_effects():
    x, s = ps.dvector("x"), ps.shared(np.zeros(3))
    for f in (ps.function([x], x, updates={s: s + x}), ps.function([x], x, trust_input=True),
              ps.function([ps.In(x, borrow=True)], 2 * x), ps.function([x], s, givens={s: x}),
              ps.function([x], ps.Out(x * 2, borrow=True))):
        with pytest.raises(ps.Error, match="wrap"):
            ps.torch.wrap(f)
    f = ps.torch.wrap(ps.function([x], x * 2))
    with pytest.raises(TypeError, match="got 2 arguments"):
        f(needing(3), needing(3))
    assert f(torch.ones(2, dtype=torch.float32, requires_grad=True)).dtype == torch.float64


# -- modules ------------------------------------------------------------------------------------


def test_modules_have_the_parameters_and_their_state():
    A = ps.Diagonal(ps.Parameter(np.ones(3), trainable=True), "N") | ps.Diagonal(learned(3), "N")
    module = ps.torch.Module(A)
    assert sorted(module.state_dict()) == ["linops.0.weight", "linops.1.weight"]
    assert len(list(module.parameters())) == 2
    x = torch.ones(3, dtype=torch.float64)
    module(x).sum().backward()
    assert all(p.grad is not None for p in module.parameters())
    before = module(x).detach().clone()
    state = copy.deepcopy(module.state_dict())
    with torch.no_grad():
        for p in module.parameters():
            p.mul_(2)
    torch.testing.assert_close(module(x).detach(), 4 * before)
    np.testing.assert_allclose(A(np.ones(3)), 4 * before.numpy())
    module.load_state_dict(state)
    torch.testing.assert_close(module(x).detach(), before)
    assert not list(ps.torch.Module(ps.Diagonal(np.ones(3), "N")).parameters())


def test_training_a_diagonal_is_training_it_in_torch():
    n = 16
    target = torch.tensor(RNG.normal(size=n) + 1j * RNG.normal(size=n))
    x = torch.tensor(RNG.normal(size=(n,)) + 1j * RNG.normal(size=n))
    ours = torch.nn.Parameter(torch.ones(n, dtype=torch.complex128))
    theirs = torch.nn.Parameter(torch.ones(n, dtype=torch.complex128))
    A = ps.Fft(1, batch=(), grid=("N", "K")) | ps.Diagonal(ours, "K")

    def train(w, apply):
        optimizer = torch.optim.Adam([w], lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            loss = (apply() - target).abs().square().sum()
            loss.backward()
            optimizer.step()
        return loss.item()

    a = train(ours, lambda: A(x))
    b = train(theirs, lambda: torch.fft.fft(x, norm="ortho") * theirs)
    assert abs(a - b) < 1e-9 * abs(b)
    torch.testing.assert_close(ours.detach(), theirs.detach(), rtol=0, atol=1e-5)


class Unrolled(torch.nn.Module):
    """Unrolled gradient steps, each with a learned length, followed by a learned threshold."""

    def __init__(self, A, n_steps):
        super().__init__()
        self.A = A
        self.length = torch.nn.Parameter(torch.full((n_steps,), 0.3, dtype=torch.float64))
        self.threshold = torch.nn.Parameter(torch.full((n_steps,), 0.01, dtype=torch.float64))

    def forward(self, b):
        x = torch.zeros(self.A.matrix_size()[1], dtype=torch.float64)
        for length, threshold in zip(self.length, self.threshold):
            x = x - length * self.A.H(self.A(x) - b)
            x = torch.sign(x) * torch.relu(x.abs() - threshold)
        return x


def test_an_unrolled_network_trains():
    M = RNG.normal(size=(20, 40)) / np.sqrt(20)
    A = ps.Dense(M, "MN,N->M")
    images = [torch.tensor(RNG.normal(size=40) * (RNG.random(40) < 0.1)) for _ in range(4)]
    data = [A(x) for x in images]
    network = Unrolled(A, 5)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = sum((network(b) - x).square().sum() for x, b in zip(images, data))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.7 * losses[0]
    assert all(p.grad.abs().sum() > 0 for p in network.parameters())


@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_applications_are_opaque_to_torch_compile():
    w = learned(4)
    A = ps.Diagonal(w, "N")

    def program(x):
        return (A(x * 2) + 1).sum()

    x = needing(4, dtype=torch.float64)
    expected = program(x)
    compiled = torch.compile(program, backend="eager")
    found = compiled(x)
    torch.testing.assert_close(found, expected)
    found.backward()
    torch.testing.assert_close(x.grad, 2 * w.detach())


@of_torch
@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_a_module_without_parameters_is_one_step_of_a_compiled_graph():
    for A in (ps.Dense(W, "MN,N->M"), ps.Fft(1, batch=()), ps.Identity("N")):
        module = ps.torch.Module(A)

        def program(x):
            return module(x * 2 + 1).abs().square().sum()

        x, again = needing(4, dtype=torch.float64), needing(4, dtype=torch.float64)
        again.data.copy_(x.data)
        compiled = torch.compile(program, backend="aot_eager", fullgraph=True)
        torch.testing.assert_close(compiled(x), program(again))
        compiled(x).backward()
        program(again).backward()
        torch.testing.assert_close(x.grad, again.grad)
    copied = copy.deepcopy(module)  # numbers of its own
    assert copied._number != module._number
    torch.testing.assert_close(torch.compile(copied, backend="eager", fullgraph=True)(x), x)


@of_torch
def test_a_module_with_parameters_breaks_the_graph():
    module = ps.torch.Module(ps.Diagonal(learned(4), "N"))
    x = torch.ones(4, dtype=torch.float64)
    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(module, backend="eager", fullgraph=True)(x)
    torch.testing.assert_close(torch.compile(module, backend="eager")(x), module(x))


@of_torch
@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_the_compiled_step_obeys_the_rules_of_torch():
    for A in (ps.Dense(W, "MN,N->M"), ps.Identity("N"), ps.Fft(1, batch=())):
        module = ps.torch.Module(A)
        x = needing(4, dtype=torch.complex128)
        torch.library.opcheck(torch.ops.palimpsest.apply.default, (x, module._number, False))


@of_torch
def test_transforms_of_functions_take_operators():
    dense = torch.tensor(W.real)
    x, t = torch.arange(4.0, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    rows = torch.stack([x, t, x + t])
    A = ps.Dense(W.real, "MN,N->M")

    def energy(A):
        return lambda x: A(x).square().sum()

    def plain(x):
        return dense @ x

    torch.testing.assert_close(torch.func.grad(energy(A))(x), torch.func.grad(energy(plain))(x))
    torch.testing.assert_close(torch.func.vmap(A)(rows), torch.func.vmap(plain)(rows))
    torch.testing.assert_close(torch.func.vmap(A, in_dims=1)(rows.T), torch.func.vmap(plain)(rows))
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(energy(A)))(rows),
                               torch.func.vmap(torch.func.grad(energy(plain)))(rows))
    torch.testing.assert_close(torch.func.hessian(energy(A))(x), torch.func.hessian(energy(plain))(x))
    for found, expected in zip(torch.func.jvp(A, (x,), (t,)), torch.func.jvp(plain, (x,), (t,))):
        torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.func.jacrev(A)(x), dense)
    torch.testing.assert_close(torch.func.jacfwd(A)(x), dense)
    v = ps.dvector("v")
    f = ps.torch.wrap(ps.function([v], ps.ops.sum(ps.ops.exp(v))))
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(f))(rows), rows.exp())
    w = learned(4)
    torch.testing.assert_close(torch.func.grad(energy(ps.Diagonal(w, "N")))(x), (2 * x * w**2).detach())


def test_kinds_of_arrays_do_not_mix():
    v, u = ps.dvector("v"), ps.dvector("u")
    f = ps.function([v, u], v + u)
    x = torch.ones(2, dtype=torch.float64)
    assert isinstance(f(x, np.ones(2)), torch.Tensor) and isinstance(f(x, ps.ones(2)), torch.Tensor)
    back = f(x, x)
    assert ps.asarray(back).data_ptr() == back.data_ptr()
    assert isinstance(ps.conjugate_gradients(ps.Identity("N"), x).x, torch.Tensor)
    for dtype in (torch.float16, torch.bfloat16):
        with pytest.raises(ps.DTypeError, match=f"{dtype}.*expected.*float32"):
            ps.asarray(torch.ones(2, dtype=dtype))


CONVOLUTION = ps.Convolution(np.array([1.0, 2.0, 3.0]), grid="N", batch=())


class Applied(torch.utils.data.Dataset):
    """A data set whose items an operator computes on access."""

    def __len__(self):
        return 6

    def __getitem__(self, k):
        return CONVOLUTION(np.full(5, float(k)))


@pytest.mark.filterwarnings("ignore:os.fork")  # JAX warns if an earlier test has imported it
def test_workers_of_a_data_loader_compute_the_same():
    threads = [threading.Thread(target=lambda: [CONVOLUTION.N(np.ones(5)) for _ in range(200)]) for _ in range(2)]
    for thread in threads:
        thread.start()
    loader = torch.utils.data.DataLoader(Applied(), batch_size=2, num_workers=2, multiprocessing_context="fork")
    rows = torch.cat(list(loader))
    for thread in threads:
        thread.join()
    np.testing.assert_array_equal(rows.numpy(), [CONVOLUTION(np.full(5, float(k))) for k in range(6)])


# -- forward mode ---------------------------------------------------------------------------------

@of_torch
def test_tangents_pass_through():
    import torch.autograd.forward_ad as forward_ad

    x, t = torch.arange(4.0, dtype=torch.float64), torch.ones(4, dtype=torch.float64)
    w = learned(4)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, t)
        for A in (ps.Dense(W, "MN,N->M"), ps.Fft(1, batch=()), ps.Diagonal(w, "N"), ps.Identity("N")):
            for grad_mode in (torch.enable_grad, torch.no_grad):
                with grad_mode():
                    y, tangent = forward_ad.unpack_dual(A(dual))
                torch.testing.assert_close(y.detach(), A(x).detach())
                torch.testing.assert_close(tangent.detach(), A(t).detach())
        assert forward_ad.unpack_dual(ps.Identity("N")(x)).tangent is None
        v = ps.dvector("v")
        f = ps.function([v], ps.ops.exp(v))
        torch.testing.assert_close(forward_ad.unpack_dual(ps.torch.wrap(f)(dual)).tangent, x.exp())
        with pytest.raises(TypeError, match="with a tangent.*Try palimpsest.torch.wrap"):
            f(dual)
        with pytest.raises(TypeError, match="with a tangent"):
            ps.asarray(dual)
    torch.testing.assert_close(f(x), x.exp())


@of_torch
def test_forward_mode_agrees_with_differences():
    w = needing(4)
    x = needing(4)
    assert check(ps.Dense(W, "MN,N->M"), x, check_forward_ad=True)
    assert check(lambda x, w: ps.Diagonal(w, "N")(x), (x, w))
    v = ps.dvector("v")
    f = ps.torch.wrap(ps.function([v], [ps.ops.sin(v) * v, ps.ops.sum(v**3)]))
    assert check(f, needing(3, dtype=torch.float64), check_forward_ad=True)


def test_a_parameter_that_torch_learns_is_summed_by_torch():
    w = learned(3)
    total = ps.Diagonal(w, "N").weight.sum()
    total.backward()
    assert isinstance(total, torch.Tensor) and w.grad.tolist() == [1, 1, 1]
    assert ps.Diagonal(w, "N").weight.max(0).values.shape == ()


def test_advice_about_dtypes_is_that_of_torch():
    with pytest.raises(TypeError, match=r"Try \.to\(torch\.float32\)"):
        ps.Identity("N")(torch.ones(3, dtype=torch.float16))
