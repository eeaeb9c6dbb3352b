// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"
#include "palimpsest/imaging/results/image.hpp"
#include "palimpsest/io/ismrmrd_images.hpp"
#include "palimpsest/io/nifti.hpp"

namespace PALIMPSEST_API palimpsest {

/// An image as NIfTI keeps it, and back. Axes are (.., T, Nz, Ny, Nx); slices (S) take the place of
/// z, and others follow T.
///
/// Errors   ShapeError "NIfTI": more than seven axes, slices beside z, or slices that are not one
///          volume (see volumes_of())
NiftiImage to_nifti(const Image& image);
Image from_nifti(const NiftiImage& nifti);

/// An image as the images of an ISMRMRD file, and back: one for each slice (S), frame (T), set (M)
/// and so on; coils are channels. Position and directions follow from the affine. Numbers that do
/// not fit the standard's 32 bits are also kept as attributes.
///
/// Errors   ShapeError "ISMRMRD": an axis without a counter; ValueError: images with counters that
///          do not form a grid
IsmrmrdImages to_ismrmrd(const Image& image);
Image from_ismrmrd(const IsmrmrdImages& images);

/// True for Nx, Ny, Nz, C, M, B5 .. B9, T, B11, B12, S, B14, B15: those that every BART file has.
bool is_bart_dimension(const std::string& name);
/// The array with BART's dimensions as axes in reverse order, for write_cfl(), and back.
///
/// Errors   ShapeError "BART": an axis that BART does not have
Tensor to_bart(const Image& image);
Image from_bart(const Tensor& array);

}  // namespace palimpsest
