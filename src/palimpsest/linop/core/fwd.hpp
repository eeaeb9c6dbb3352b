// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

class Attribute;
class NamedLinop;
class Parameter;
struct LinopFunctions;
struct LinopType;

}  // namespace palimpsest
