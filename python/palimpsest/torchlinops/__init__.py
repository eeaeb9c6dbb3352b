# SPDX-License-Identifier: Apache-2.0
"""The names and signatures of torch-named-linops, for programs that were written for it.

Parameters are borrowed: the operator reads the array that it was given, and sees writes to
it. Iterative methods give arrays of the kind of their input. Where the two packages differ in more
than that, the docstring of the function says so.
"""

import functools
from typing import Any

import numpy as np

import palimpsest as _ps
from palimpsest import _factories
from palimpsest._core import Dim, NamedDimension, NamedLinop, NamedShape, Parameter, Variable  # noqa: F401
from palimpsest._core import config as _config
from palimpsest.errors import NotSupported
from palimpsest.torchlinops import copying as copying, testing as testing
from palimpsest.torchlinops.testing import BaseNamedLinopTests as BaseNamedLinopTests

ELLIPSES = "..."
ANY = "()"
ND = NamedDimension
NS = NamedShape
Shape = "str | tuple"  # types of a shape


class _Class:
    """A factory of operators that supports isinstance()."""

    def __init__(self, make: Any, type_name: Any = None) -> None:
        functools.update_wrapper(self, make)
        self._make = make
        self._type_name = type_name or make.__name__

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._make(*arguments, **options)

    def __getattr__(self, name: Any) -> Any:
        return getattr(self._make, name)

    def __instancecheck__(self, object: Any) -> Any:
        return isinstance(object, NamedLinop) and object.type_name == self._type_name


def _given(**options: Any) -> Any:
    """The options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def _shared(value: Any) -> Any:
    """A parameter over the memory of an array; numbers and read-only arrays are copied."""
    if value is None or isinstance(value, Variable):
        return value
    flags = getattr(value, "flags", None)
    if flags is not None and not flags.writeable:
        return value
    if hasattr(value, "__dlpack__"):
        return Parameter(value, borrow=True)
    return value


# -- operators with data ------------------------------------------------------------------------


def _dense(weight: Any, weightshape: Any = None, ishape: Any = None, oshape: Any = None,
           broadcast_dims: Any = None) -> NamedLinop:
    """A contraction with a weight."""
    weightshape = None if weightshape is ... else weightshape  # pages write Dense(weight, ...)
    given = [shape is not None for shape in (weightshape, ishape, oshape)]
    if any(given) and not all(given):
        raise ValueError("[Dense] expected weightshape, ishape and oshape together, or none.")
    return _ps.Dense(_shared(weight), weightshape, ishape, oshape, broadcast=broadcast_dims or ())


def _from_einstr(weight: Any, einstr: Any, broadcast_dims: Any = None) -> NamedLinop:
    """Dense of an einsum such as 'MN,N->M'."""
    return _ps.Dense(_shared(weight), einstr, broadcast=broadcast_dims or ())


def _diagonal(weight: Any, ioshape: Any = None, broadcast_dims: Any = None) -> NamedLinop:
    """Multiplication elementwise."""
    return _ps.Diagonal(_shared(weight), **_given(dims=ioshape, broadcast=broadcast_dims))


def _from_weight(weight: Any, weight_shape: Any, ioshape: Any, shape_kwargs: Any = None) -> NamedLinop:
    """Diagonal whose weight has only some of the dimensions."""
    return _factories.from_weight(_shared(weight), weight_shape, ioshape, shape_kwargs)


def _sampling(idx: Any, input_size: Any, output_shape: Any = None, input_shape: Any = None,
              batch_shape: Any = None) -> NamedLinop:
    """Reads points along the last axes."""
    return _ps.Sampling(idx, input_size, **_given(
        output=output_shape, input=input_shape, batch=batch_shape))


def _from_mask(mask: Any, input_size: Any = None, output_shape: Any = None, input_shape: Any = None,
               batch_shape: Any = None) -> NamedLinop:
    """Reads the true entries of a mask, whose shape is the input_size."""
    return _ps.SamplingFromMask(mask, **_given(
        output=output_shape, input=input_shape, batch=batch_shape))


def _from_stacked_idx(idx: Any, input_size: Any, output_shape: Any = None, input_shape: Any = None,
                      batch_shape: Any = None, *, dim: Any = -1) -> NamedLinop:
    """The indices of a point lie along the axis `dim`."""
    if dim not in (-1, len(idx.shape) - 1):
        axes = [axis for axis in range(len(idx.shape)) if axis != dim % len(idx.shape)]
        idx = _ps.asarray(idx).permute((*axes, dim % len(idx.shape)))
    return _ps.SamplingFromStacked(idx, input_size, **_given(
        output=output_shape, input=input_shape, batch=batch_shape))


Dense = _Class(_factories._Factory(_dense, from_einstr=_from_einstr), "Dense")
Diagonal = _Class(_factories._Factory(_diagonal, from_weight=_from_weight), "Diagonal")
Sampling = _Class(_factories._Factory(
    _sampling, from_mask=_from_mask, from_stacked_idx=_from_stacked_idx), "Sampling")
Chain = _Class(_ps.Chain)
Identity = _Class(_ps.Identity)
ShapeSpec = _Class(_ps.ShapeSpec)
SumReduce = _Class(_ps.SumReduce)


@_Class
def Scalar(weight: Any, ioshape: Any = None) -> NamedLinop:
    """Multiplication by one number."""
    return _ps.Scalar(weight, **_given(dims=ioshape))


# -- transforms ---------------------------------------------------------------------------------


@functools.partial(_Class, type_name="Fft")
def FFT(ndim: Any, batch_shape: Any = None, grid_shapes: Any = None, norm: str = "ortho",
        centered: bool = False) -> NamedLinop:
    """Fourier transform over the last `ndim` axes."""
    return _ps.Fft(ndim, norm=norm or "backward", centered=centered, **_given(
        batch=batch_shape, grid=grid_shapes))


@functools.partial(_Class, type_name="Nufft")
def NUFFT(locs: Any, grid_size: Any, output_shape: Any, input_shape: Any = None, input_kshape: Any = None,
          batch_shape: Any = None, oversamp: float = 1.25, width: float = 4.0, mode: str = "interpolate",
          do_prep_locs: bool = True, apodize_weights: Any = None, **options: Any) -> NamedLinop:
    """Image to samples at frequencies in cycles per field of view."""
    return _ps.Nufft(
        locs, grid_size, output_shape, oversamp=oversamp, width=width, mode=mode,
        prepared=not do_prep_locs, **_given(input=input_shape, kspace=input_kshape,
                                            batch=batch_shape, apodization=apodize_weights),
        **options)


@functools.partial(_Class, type_name="SamplingNufft")
def SamplingNUFFT(locs: Any, grid_size: Any, output_shape: Any, input_shape: Any = None, input_kshape: Any = None,
                  batch_shape: Any = None, oversamp: float = 1.25) -> NamedLinop:
    """Image to the nearest points of an oversampled grid of frequencies."""
    return _ps.SamplingNufft(locs, grid_size, output_shape, oversamp=oversamp, **_given(
        input=input_shape, kspace=input_kshape, batch=batch_shape))


@_Class
def Interpolate(locs: Any, grid_size: Any, batch_shape: Any = None, locs_batch_shape: Any = None,
                grid_shape: Any = None, width: float = 4.0, kernel: str = "kaiser_bessel", norm: int = 1,
                pad_mode: str = "circular", kernel_params: Any = None) -> NamedLinop:
    """Reads a grid between its elements. Of the kernels there is 'kaiser_bessel'."""
    if kernel != "kaiser_bessel":
        raise NotSupported(f"[Interpolate] got kernel '{kernel}', expected 'kaiser_bessel'.")
    return _ps.Interpolate(
        locs, grid_size, width=width, norm=norm, pad_mode=pad_mode, **_given(
            batch=batch_shape, locs_batch=locs_batch_shape, grid=grid_shape),
        **(kernel_params or {}))


@_Class
def Convolution(kernel: Any, batch_shape: Any = None, in_grid_shape: Any = None, out_grid_shape: Any = None,
                padding_mode: str = "zeros", **options: Any) -> NamedLinop:
    """Convolution of the last axes with a kernel."""
    return _ps.Convolution(_shared(kernel), boundary=padding_mode, **_given(
        batch=batch_shape, grid=in_grid_shape, out=out_grid_shape), **options)


@functools.partial(_Class, type_name="FftConvolution")
def FFTConvolution(kernel: Any, batch_shape: Any = None, in_grid_shape: Any = None,
                   out_grid_shape: Any = None) -> NamedLinop:
    """The circular convolution, by FFT."""
    return _ps.FftConvolution(_shared(kernel), **_given(
        batch=batch_shape, grid=in_grid_shape, out=out_grid_shape))


# -- rearrangements -----------------------------------------------------------------------------


@_Class
def ArrayToBlocks(grid_size: Any, block_size: Any, stride: Any, mask: Any = None, batch_shape: Any = None,
                  array_shape: Any = None, blocks_shape: Any = None) -> NamedLinop:
    """Blocks of the last axes, which may overlap."""
    return _ps.ArrayToBlocks(grid_size, block_size, stride, **_given(
        mask=mask, batch=batch_shape, array=array_shape, blocks=blocks_shape))


@_Class
def BlocksToArray(grid_size: Any, block_size: Any, stride: Any, mask: Any = None, batch_shape: Any = None,
                  blocks_shape: Any = None, array_shape: Any = None) -> NamedLinop:
    """The sum of blocks."""
    return _ps.BlocksToArray(grid_size, block_size, stride, **_given(
        mask=mask, batch=batch_shape, array=array_shape, blocks=blocks_shape))


@_Class
def Pad(pad_im_size: Any, im_size: Any, in_shape: Any = None, out_shape: Any = None,
        batch_shape: Any = None) -> NamedLinop:
    """Zeros around the last axes. The size of the result comes first."""
    return _ps.Pad(im_size, pad_im_size, **_given(
        in_=in_shape, out=out_shape, batch=batch_shape))


@_Class
def Crop(crop_im_size: Any, im_size: Any, in_shape: Any = None, out_shape: Any = None,
         batch_shape: Any = None) -> NamedLinop:
    """The centre of the last axes. The size of the result comes first."""
    return _ps.Crop(im_size, crop_im_size, **_given(
        in_=in_shape, out=out_shape, batch=batch_shape))


PadLast = Pad


def _along(make: Any, dim: Any, from_length: Any, to_length: Any, ishape: Any, oshape: Any) -> NamedLinop:
    ishape, oshape = _ps.Dims(ishape), _ps.Dims(oshape)
    made: NamedLinop = make(ishape[dim], from_length, to_length, ishape, out=oshape[dim])
    return made


@_Class
def Truncate(dim: Any, from_length: Any, to_length: Any, ishape: Any, oshape: Any) -> NamedLinop:
    """The first entries of axis `dim`."""
    return _along(_ps.Truncate, dim, from_length, to_length, ishape, oshape)


@_Class
def PadDim(dim: Any, from_length: Any, to_length: Any, ishape: Any, oshape: Any) -> NamedLinop:
    """Zeros after the end of axis `dim`."""
    return _along(_ps.PadDim, dim, from_length, to_length, ishape, oshape)


@_Class
def Rearrange(ipattern: Any, opattern: Any, ishape: Any, oshape: Any, axes_lengths: Any = None) -> NamedLinop:
    """Groups and ungroups axes."""
    return _ps.Rearrange(f"{ipattern} -> {opattern}", axes_lengths or {}, in_=ishape, out=oshape)


@_Class
def Repeat(n_repeats: Any, ishape: Any, oshape: Any, broadcast_dims: Any = None) -> NamedLinop:
    """New dimensions along which x is repeated; broadcast_dims has no meaning here."""
    return _ps.Repeat(n_repeats, ishape, oshape)


@_Class
def Zero(ishape: Any = ("...",), oshape: Any = None) -> NamedLinop:
    """Zeros."""
    return _ps.Zero(ishape, oshape)


def Sleep(duration: float = 0.1, ioshape: Any = ("...",), oshape: Any = None) -> NamedLinop:
    """The identity, which sleeps for a number of seconds."""
    slow = _ps.Sleep(duration, ioshape)
    return slow if oshape is None else _ps.ShapeSpec(ioshape, oshape) @ slow


@functools.partial(_Class, type_name="SimpleLinop")
def SimpleLinop(forward: Any, adjoint: Any, normal: Any = None, ishape: Any = ("...",), oshape: Any = None,
                name: Any = None) -> NamedLinop:
    """An operator of functions. They get a Variable and use palimpsest.ops."""
    return _ps.SimpleLinop(forward, adjoint, normal, ishape=ishape, oshape=oshape,
                             name=name or "SimpleLinop")


class DeviceSpec:
    """A device; streams have no meaning here."""

    def __init__(self, device: str = "cpu", compute_stream: Any = None, transfer_stream: Any = None) -> None:
        self.device = device
        self.compute_stream = compute_stream
        self.transfer_stream = transfer_stream


@_Class
def ToDevice(idevice: Any, odevice: Any, ioshape: Any = None) -> NamedLinop:
    """Copies x to another device; None is the CPU."""
    names = [getattr(spec, "device", spec) or "cpu" for spec in (idevice, odevice)]
    return _ps.ToDevice(*(str(name) for name in names), **_given(dims=ioshape))


# -- containers: their children are copies that share the data ----------------------------------


@_Class
def Add(*linops: Any, threaded: bool = True, num_workers: Any = None, accumulate: bool = False) -> NamedLinop:
    """The sum of operators. Threads are those of palimpsest.config; a plan says where it accumulates."""
    return _ps.Add([A.copy() for A in linops])


@_Class
def Concat(*linops: Any, idim: Any = None, odim: Any = None, threaded: bool = True,
           num_workers: Any = None, accumulate: bool = False) -> NamedLinop:
    """Operators side by side along a dimension that they have."""
    return _ps.Concat([A.copy() for A in linops], in_=idim, out=odim)


@_Class
def Stack(*linops: Any, idim_and_idx: Any = (None, None), odim_and_idx: Any = (None, None),
          threaded: bool = True,
          num_workers: Any = None, accumulate: bool = False) -> NamedLinop:
    """Operators side by side along a new dimension."""
    axes = [pair if pair[0] is not None else None for pair in (idim_and_idx, odim_and_idx)]
    return _ps.Stack([A.copy() for A in linops], in_=axes[0], out=axes[1])


# -- cutting ------------------------------------------------------------------------------------


def BatchSpec(batch_sizes: Any, device_matrix: Any = None, base_device: Any = None) -> Any:
    """One level of cutting; devices are taken in the order of the flattened matrix."""
    devices = device_matrix
    if devices is not None:
        devices = [str(device) for device in getattr(devices, "flat", devices)]
    return _ps.BatchSpec(batch_sizes, devices, None if base_device is None else str(base_device))


def create_batched_linop(linop: Any, batch_specs: Any, default_device: Any = None, threaded: bool = True,
                         num_workers: Any = None,
                         accumulate: bool = False) -> Any:
    """The operator, cut into tiles that are assembled again. Devices are those of the specs."""
    return _ps.create_batched_linop(linop, batch_specs)


def split_linop(linop: Any, batch_sizes: Any) -> Any:
    """Object arrays of the tiles, and of the parts that each reads and gives."""
    return _ps.split_linop(linop, batch_sizes)


# -- iterative methods --------------------------------------------------------------------------


def _operator(A: Any, x: Any) -> Any:
    """An operator of a function of arrays like x, which is its own adjoint."""
    if isinstance(A, NamedLinop):
        return A
    from palimpsest.interop import _opaque

    def call(values: Any) -> Any:
        if type(x).__module__ != "torch":
            return A(values)
        import torch

        return A(torch.tensor(values)).numpy()  # a copy: the values are released after the call

    names = [f"A{i}" for i in range(len(x.shape))]
    return _opaque.opaque("function", call, call, names, names, (tuple(x.shape),) * 2,
                          lambda given: np.dtype(given), None)


def conjugate_gradients(A: Any, y: Any, x0: Any = None, max_num_iters: int = 20, gtol: float = 1e-3,
                        ltol: float = 1e-5,
                        disable_tracking: bool = False, tqdm_kwargs: Any = None) -> Any:
    """x with A x = y for a Hermitian positive A.

    It stops when |A x - y| is below gtol. ltol, a bound of the change of the loss that the original
    asks for besides, is not used.
    """
    norm = float(np.linalg.norm(np.asarray(y)))
    tolerance = min(gtol / norm, 1.0) if norm else gtol
    return _ps.conjugate_gradients(_operator(A, y), y, max_iterations=max_num_iters, tolerance=tolerance,
                                     **_given(x0=x0)).x


def power_method(A: Any, v_init: Any, max_iters: int = 50, eps: float = 0.0, tol: float = 1e-5,
                 dim: Any = None, tqdm_kwargs: Any = None) -> Any:
    """The eigenvector and the largest eigenvalue."""
    if dim is not None:
        raise NotSupported(f"[power_method] got dim={dim}, expected None.")
    vector: Any
    value, vector = _ps.power_method(_operator(A, v_init), v_init, max_iterations=max_iters, tolerance=tol)
    # Torch tensors in give torch tensors out, as in the original.
    return vector, vector.real.new_tensor(value) if hasattr(vector, "new_tensor") else np.float64(value)


def polynomial_preconditioner(T: Any, degree: Any, norm: str = "l_2", lower_eig: float = 0.0,
                              upper_eig: float = 1.0) -> Any:
    """A polynomial in T that approximates its inverse."""
    return _ps.polynomial_preconditioner(
        T, degree, norm=norm.replace("_", ""), lower=lower_eig, upper=upper_eig)


# -- names --------------------------------------------------------------------------------------


def AnyDim(i: Any = None) -> Any:
    """The wildcard of one dimension."""
    return NamedDimension(ANY) if i is None else NamedDimension(f"({i})")


def get_nd_shape(dim: Any, kspace: bool = False) -> Any:
    """Names of the axes of an image of 1 to 3 dimensions, or of its spectrum."""
    if dim not in (1, 2, 3):
        raise ValueError(f"[get_nd_shape] got {dim}, expected 1, 2 or 3 dimensions.")
    return tuple(("K" if kspace else "N") + axis for axis in "xyz"[:dim])


def N2K(dims: Any) -> Any:
    """Names of an image as those of its spectrum."""
    return _renamed_axes(dims, "N", "K")


def K2N(dims: Any) -> Any:
    """Names of a spectrum as those of its image."""
    return _renamed_axes(dims, "K", "N")


def _renamed_axes(dims: Any, old: Any, new: Any) -> Any:
    names = [str(dim) for dim in dims]
    return tuple(NamedDimension(name.replace(old, new) if set(name) & set("xyz") else name)
                 for name in names)


# -- config -------------------------------------------------------------------------------------


class _Config:
    """The keys of the original; they are keys of palimpsest.config."""

    _keys = ("reduce_identity_in_normal", "cache_adjoint_normal", "log_device_transfers",
             "shape_inference")

    def __getattr__(self, key: Any) -> Any:
        if key not in self._keys:
            raise AttributeError(f"config has no '{key}', expected one of {', '.join(self._keys)}")
        return getattr(_config, key)

    def __setattr__(self, key: Any, value: Any) -> None:
        if key not in self._keys:
            raise AttributeError(f"config has no '{key}', expected one of {', '.join(self._keys)}")
        setattr(_config, key, value)

    def using(self, **changes: Any) -> Any:
        """Other values within a with statement."""
        unknown = set(changes) - set(self._keys)
        if unknown:
            raise ValueError(f"Invalid config key: {unknown.pop()!r}. Valid keys: {self._keys}")
        return _config.using(**changes)


config = _Config()
