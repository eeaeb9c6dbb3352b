# SPDX-License-Identifier: Apache-2.0
"""Minimizers in double precision, written from their definitions alone."""

import numpy as np

from data import fft


def ifft(x, axes):
    return np.fft.fftshift(np.fft.ifftn(np.fft.ifftshift(x, axes), axes=axes, norm="ortho"), axes)


ROOT3 = np.sqrt(3)
DB2 = np.array([1 + ROOT3, 3 + ROOT3, 3 - ROOT3, 1 - ROOT3]) / (4 * np.sqrt(2))


def halves(x, axis, inverse=False):
    """One step of the periodic wavelet transform db2; the last entry of an odd line stays."""
    x = np.moveaxis(x, axis, 0)
    n, even = x.shape[0], x.shape[0] // 2 * 2
    low, high = DB2, DB2[::-1] * [1, -1, 1, -1]
    at = (2 * np.arange(even // 2)[:, None] + np.arange(4)) % even
    result = np.zeros_like(x)
    if inverse:
        first = even // 2
        a, b = x[:first], x[n - first:]
        for m in range(4):  # the points 2 n + m are different ones for each m
            result[at[:, m]] += low[m] * a + high[m] * b
        if n > even:
            result[-1] = x[first]
    else:
        first = even // 2
        for m in range(4):
            result[:first] += low[m] * x[at[:, m]]
            result[n - first:] += high[m] * x[at[:, m]]
        if n > even:
            result[first] = x[-1]
    return np.moveaxis(result, 0, axis)


def corners(shape):
    """The corners that are transformed, from the whole on, while the smallest stays at least 16."""
    result, corner = [], list(shape)
    while min((n + 1) // 2 for n in corner) >= 16:
        result.append(tuple(corner))
        corner = [(n + 1) // 2 for n in corner]
    return result


def wavelet(x, inverse=False):
    x = x.copy()
    for ny, nx in corners(x.shape)[::-1 if inverse else 1]:
        part = x[:ny, :nx]
        for axis in (0, 1):
            part = halves(part, axis, inverse)
        x[:ny, :nx] = part
    return x


def soft(x, threshold):
    size = np.abs(x)
    return x * np.maximum(1 - threshold / np.maximum(size, 1e-300), 0)


def wavelet_fista(kspace, maps, weight, iterations):
    """|A x - y|^2 / 2 + weight |W x|_1 by FISTA with restarts, L = 1."""
    kspace, maps = kspace.astype(np.complex128), maps.astype(np.complex128)
    mask = (kspace != 0).any(0)

    def gradient(z):
        return (maps.conj() * ifft(mask * fft(maps * z, (1, 2)) - kspace, (1, 2))).sum(0)

    x = z = np.zeros(maps.shape[1:], np.complex128)
    t = 1.0
    for _ in range(iterations):
        following = wavelet(soft(wavelet(z - gradient(z)), weight), inverse=True)
        moved = following - x
        if np.vdot(moved, z - following).real > 0:
            t = 1.0
        t_next = (1 + np.sqrt(1 + 4 * t * t)) / 2
        z = following + (t - 1) / t_next * moved
        x, t = following, t_next
    return x


def exact_radial(kspace, trajectory, maps, weight, iterations):
    """(A^H A + weight) x = A^H y by conjugate gradients, A made of exact sums."""
    n = maps.shape[-1]
    points = trajectory.reshape(-1, 3)[:, :2].real.astype(np.float64)
    at = np.arange(n) - n // 2
    along = [np.exp(-2j * np.pi / n * np.outer(points[:, d], at)) for d in (0, 1)]
    maps = maps.astype(np.complex128)

    def forward(x):
        return np.einsum("py,cyx,px->cp", along[1], maps * x, along[0], optimize=True) / n

    def adjoint(y):
        images = np.einsum("py,cp,px->cyx", along[1].conj(), y, along[0].conj(), optimize=True) / n
        return (maps.conj() * images).sum(0)

    x = np.zeros((n, n), np.complex128)
    r = adjoint(kspace.reshape(maps.shape[0], -1).astype(np.complex128))
    p, rr = r, np.vdot(r, r).real
    for _ in range(iterations):
        q = adjoint(forward(p)) + weight * p
        step = rr / np.vdot(p, q).real
        x, r = x + step * p, r - step * q
        rr, previous = np.vdot(r, r).real, rr
        p = r + rr / previous * p
    return x


def bounded(v, bound, groups):
    """Scales each group of parts to a norm of at most `bound` at each point."""
    v = v.copy()
    for group in groups:
        norm = np.sqrt((np.abs(v[group]) ** 2).sum(0))
        v[group] /= np.maximum(1, norm / bound)
    return v


def tgv(kspace, maps, weight, iterations, as_bart):
    """The total generalized variation by the method of Condat and Vu, weights 1 and 2, periodic.

    All parts of the gradient are joined at a point, and all of the symmetrized gradient, which
    goes in the other direction. BART 0.8 joins neither those of the gradient nor the rows of the
    symmetrized one, and both go in the same direction.
    """
    kspace, maps = kspace.astype(np.complex128), maps.astype(np.complex128)
    mask = (kspace != 0).any(0)
    second = 1 if as_bart else -1
    gradients = [[0], [1]] if as_bart else [[0, 1]]
    hessians = [[0, 1], [2, 3]] if as_bart else [[0, 1, 2, 3]]

    def difference(u, axis, sign):
        return sign * (u - np.roll(u, sign, axis))

    def adjoint(u, axis, sign):
        return sign * (u - np.roll(u, -sign, axis))

    def data_gradient(x):
        return (maps.conj() * ifft(mask * fft(maps * x, (1, 2)) - kspace, (1, 2))).sum(0)

    u = np.zeros((3, *maps.shape[1:]), np.complex128)
    p, q = np.zeros_like(u[:2]), np.zeros((4, *u.shape[1:]), np.complex128)
    primal, dual = 0.25, 0.25  # 1 / primal - dual |K|^2 >= 1 / 2 with |K|^2 <= 14
    for _ in range(iterations):
        d = np.stack([sum(adjoint(p[i], i, 1) for i in (0, 1)), -p[0], -p[1]])
        for i in (0, 1):
            for j in (0, 1):
                d[1 + i] += (adjoint(q[2 * i + j], j, second) + adjoint(q[2 * j + i], j, second)) / 2
        d[0] += data_gradient(u[0])
        following = u - primal * d
        e = 2 * following - u
        first = np.stack([difference(e[0], i, 1) - e[1 + i] for i in (0, 1)])
        jacobi = [[difference(e[1 + i], j, second) for j in (0, 1)] for i in (0, 1)]
        symmetric = np.stack([(jacobi[i][j] + jacobi[j][i]) / 2 for i in (0, 1) for j in (0, 1)])
        p = bounded(p + dual * first, weight, gradients)
        q = bounded(q + dual * symmetric, 2 * weight, hessians)
        u = following
    return u[0]
