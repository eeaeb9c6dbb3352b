# SPDX-License-Identifier: Apache-2.0
"""Conversions for other packages: one module for each, imported at its first use."""

from typing import Any


def from_scipy(L: Any, ishape: Any, oshape: Any, sizes: Any, *, check: bool = True) -> Any:
    """An operator of a scipy.sparse.linalg.LinearOperator, or of an object that makes one.

    Parameters
    ----------
    L : LinearOperator, array or sparse matrix
        Its matvec and rmatvec are called with arrays in row-major order.
    ishape, oshape : str or dims
        Names of the axes of x and of y.
    sizes : dict of str to int
        The extent of every axis.
    check : bool
        Compare L with its adjoint on random vectors before it is used.

    Returns
    -------
    NamedLinop
        It calls L, cannot be saved, and runs one application at a time.

    Raises
    ------
    ValueError
        "adjoint": rmatvec is not the adjoint of matvec; the sizes are not those of L.

    Examples
    --------
    >>> import numpy as np, palimpsest as ps
    >>> A = ps.from_scipy(np.array([[1.0, 2.0], [3.0, 4.0]]), "N", "M", {"N": 2, "M": 2})
    >>> A(np.ones(2))
    array([3., 7.])
    """
    from palimpsest.interop import scipy

    return scipy.from_scipy(L, ishape, oshape, sizes, check=check)


def from_functions(fn: Any, adj_fn: Any, ishape: Any, oshape: Any, sizes: Any, *, dtype: Any = None,
                   check: bool = True) -> Any:
    """An operator of two functions of arrays, as those of NumPy. See linop() for functions that build graphs.

    Parameters
    ----------
    fn, adj_fn : function
        Map an array with the extents of ishape to one with those of oshape, and back. They get read-only arrays.
    ishape, oshape : str or dims
        Names of the axes of x and of y.
    sizes : dict of str to int
        The extent of every axis.
    dtype : dtype, optional
        The results have the dtype to which it and x promote. Default: that of x.
    check : bool
        Compare fn with its adjoint on random arrays before it is used.

    Returns
    -------
    NamedLinop
        It calls the functions, cannot be saved, and runs one application at a time.

    Raises
    ------
    ValueError
        "adjoint": adj_fn is not the adjoint of fn.

    Examples
    --------
    >>> import numpy as np, palimpsest as ps
    >>> A = ps.from_functions(np.cumsum, lambda y: np.cumsum(y[::-1])[::-1], "N", "M", {"N": 3, "M": 3})
    >>> A(np.ones(3)), A.H(np.ones(3))
    (array([1., 2., 3.]), array([3., 2., 1.]))
    """
    from palimpsest.interop import _opaque

    return _opaque.of_functions(fn, adj_fn, ishape, oshape, sizes, dtype, check)


def from_pylops(Op: Any, ishape: Any, oshape: Any, *, check: bool = True) -> Any:
    """An operator of a pylops.LinearOperator; see from_scipy. The sizes are Op.dims and Op.dimsd."""
    from palimpsest.interop import pylops

    return pylops.from_pylops(Op, ishape, oshape, check=check)


def from_sigpy(L: Any, ishape: Any, oshape: Any, *, check: bool = True) -> Any:
    """An operator of a sigpy.linop.Linop; see from_scipy. The sizes are L.ishape and L.oshape."""
    from palimpsest.interop import sigpy

    return sigpy.from_sigpy(L, ishape, oshape, check=check)


def from_mrpro(Op: Any, ishape: Any, oshape: Any, sizes: Any, *, check: bool = True) -> Any:
    """An operator of a mrpro.operators.LinearOperator, of tensors without further axes in front; see from_scipy."""
    from palimpsest.interop import mrpro

    return mrpro.from_mrpro(Op, ishape, oshape, sizes, check=check)


def map_chunks(source: Any, path: Any = None, *, dtype: Any = None) -> Any:
    """An array that is stored in chunks, of Zarr, Dask or h5py, as a tensor whose bytes stay in a file.

    The chunks are read one after the other and are written to an NPY file, so one is in memory, beside what the source
    itself takes to read it. A budget then streams the tensor: of a mapped file only what one step reads counts.

    Parameters
    ----------
    source : array
        It has shape, dtype and slices, and says its chunks by `chunks` (or `shards`); without, parts along the first
        axis are read.
    path : path, optional
        The file, which is whole or not there. Default: one without a name, in the folder for temporary files, that is
        gone with the tensor.
    dtype : dtype, optional
        Of the tensor. Default: that of the source.

    Returns
    -------
    Tensor

    Raises
    ------
    TypeError
        source is no array.

    Examples
    --------
    >>> import numpy as np, palimpsest as ps
    >>> ps.map_chunks(np.arange(6.0).reshape(2, 3)).shape
    (2, 3)
    """
    from palimpsest.interop import chunks

    return chunks.map_chunks(source, path, dtype)


def convert_mrd(source: Any, path: Any) -> int:
    """A stream of raw data in the format MRD 2 as an ISMRMRD file, which read_scan() and `palimpsest recon` read.

    The header's facts that a reconstruction needs, of the first encoding, and all readouts go along; images, waveforms
    and the time stamps of physiology do not. All readouts are in memory at once. Needs the package `mrd-python`.

    Parameters
    ----------
    source : path or mrd.MrdReaderBase
        The file of the stream, or a reader of it from which nothing was read.
    path : path
        The file that is written, whole or not at all.

    Returns
    -------
    int
        The number of readouts.

    Raises
    ------
    FormatError
        "a stream without": no header with an encoding, or no readout.

    Examples
    --------
    >>> import palimpsest as ps
    >>> ps.convert_mrd("scan.mrd", "scan.h5")  # doctest: +SKIP
    4096
    """
    from palimpsest.interop import mrd

    return mrd.convert_mrd(source, path)


def as_scipy(self: Any, sizes: Any = None, dtype: Any = None) -> Any:
    """A scipy.sparse.linalg.LinearOperator; see palimpsest.interop.scipy.as_scipy."""
    from palimpsest.interop import scipy

    return scipy.as_scipy(self, sizes, dtype)


def as_pylops(self: Any, sizes: Any = None, dtype: Any = None) -> Any:
    """A pylops.LinearOperator; see palimpsest.interop.pylops.as_pylops."""
    from palimpsest.interop import pylops

    return pylops.as_pylops(self, sizes, dtype)


def as_sigpy(self: Any, sizes: Any = None) -> Any:
    """A sigpy.linop.Linop; see palimpsest.interop.sigpy.as_sigpy."""
    from palimpsest.interop import sigpy

    return sigpy.as_sigpy(self, sizes)


def as_deepinv(self: Any, *, pairs: bool = False, **options: Any) -> Any:
    """A deepinv.physics.LinearPhysics; see palimpsest.interop.deepinv.as_deepinv."""
    from palimpsest.interop import deepinv

    return deepinv.as_deepinv(self, pairs, **options)


def as_mrpro(self: Any) -> Any:
    """A mrpro.operators.LinearOperator; see palimpsest.interop.mrpro.as_mrpro."""
    from palimpsest.interop import mrpro

    return mrpro.as_mrpro(self)


def function_signature(self: Any) -> Any:
    """The signature of a compiled function: its inputs by their names, those without one by position."""
    import inspect

    names = self._names
    by_position = max((i for i, name in enumerate(names) if not name.isidentifier()), default=-1) + 1
    kinds: list[Any] = [inspect.Parameter.POSITIONAL_ONLY] * by_position
    kinds += [inspect.Parameter.POSITIONAL_OR_KEYWORD] * (len(names) - by_position)
    return inspect.Signature([
        inspect.Parameter(name if name.isidentifier() else f"_{i}", kind, annotation=str(x.type))
        for i, (name, kind, x) in enumerate(zip(names, kinds, self.inputs))])


class FunctionSignature:
    """The attribute __signature__ of a compiled function; the class has none."""

    def __get__(self, f: Any, cls: Any = None) -> Any:
        if f is None:
            raise AttributeError("__signature__")
        return function_signature(f)


def register_threadpoolctl() -> None:
    """Lets threadpoolctl limit the threads of this library, by the name "palimpsest".

    Examples
    --------
    >>> import palimpsest as ps
    >>> ps.register_threadpoolctl()  # doctest: +SKIP
    """
    from palimpsest.interop import threadpoolctl

    threadpoolctl.register()
