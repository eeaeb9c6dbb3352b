// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

class NamedDimension;
using ND = NamedDimension;
class Dims;
class DimSizes;
class NamedDimCollection;
class NamedShape;
class ShapeValue;
struct Match;

}  // namespace palimpsest
