// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <palimpsest/palimpsest.hpp>
#include <string>
#include <vector>

namespace palimpsest::testing {

/// Throws std::runtime_error with the name of the failed check.
void require(bool holds, const char* what);

/// Objects made at one time and used at another.
class Objects {
 public:
  Objects();
  /// Applies, writes, copies and saves the objects; files go to `folder`. Throws if a value is
  /// wrong.
  void use(const std::string& folder);

  NamedLinop dense, chain;
  SharedVariable sum;
  Function add;
  Parameter weight, twice;
  Tensor x;
};

/// Makes and uses objects of every public header; files go to `folder`, which exists. Throws if a
/// value is wrong.
void use_everything(const std::string& folder);

}  // namespace palimpsest::testing
