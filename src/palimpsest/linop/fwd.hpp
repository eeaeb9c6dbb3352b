// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace palimpsest {

class Attribute;
class NamedLinop;
class Parameter;
struct LinopFunctions;
struct LinopType;

}  // namespace palimpsest
