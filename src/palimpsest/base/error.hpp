// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "palimpsest/base/api.hpp"

namespace PALIMPSEST_API palimpsest {

/// The root of all exceptions that this library throws itself. Exceptions of the C++ library pass
/// through: std::bad_alloc if the heap has no room for handles, shapes or texts (memory for
/// elements comes from an Allocator, whose OutOfMemory is an Error). In both cases the state is as
/// before the call.
///
/// Text: `[what the caller wrote] what is wrong: got <value>, expected <value>. Try <action>.`,
/// then the notes of the layers that it passed through, one per line.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  const char* what() const noexcept override {
    return noted_ ? noted_->c_str() : std::runtime_error::what();
  }
  /// Appends a line about the place of the error; class and first line stay.
  void add_note(const std::string& note) {
    noted_ = std::make_shared<const std::string>(std::string(what()) + "\n  " + note);
  }

 private:
  std::shared_ptr<const std::string> noted_;  // shared: copying an exception must not throw
};

/// A value that is wrong although its type is right.
class ValueError : public Error {
 public:
  using Error::Error;
};
/// Shapes, extents or numbers of axes that do not fit.
class ShapeError : public ValueError {
 public:
  using ValueError::ValueError;
};
/// A dimension, shape or parameter name that is malformed or unknown.
class NameError : public ValueError {
 public:
  using ValueError::ValueError;
};
/// A number that does not fit its type.
class OverflowError : public ValueError {
 public:
  using ValueError::ValueError;
};
/// An input that no output, update or given needs, or that is named twice.
class UnusedInputError : public ValueError {
 public:
  using ValueError::ValueError;
};
/// A variable that the cost does not depend on.
class DisconnectedError : public ValueError {
 public:
  using ValueError::ValueError;
};

/// A value of the wrong kind.
class TypeError : public Error {
 public:
  using Error::Error;
};
/// A dtype that an operation does not take, or a conversion that loses values.
class DTypeError : public TypeError {
 public:
  using TypeError::TypeError;
};
/// Memory on another device than the operation runs on.
class DeviceError : public TypeError {
 public:
  using TypeError::TypeError;
};

/// A condition that was asserted and does not hold.
class AssertionError : public Error {
 public:
  using Error::Error;
};

/// Memory that overlaps but must not.
class AliasError : public Error {
 public:
  using Error::Error;
};

/// The file system said no.
class IoError : public Error {
 public:
  using Error::Error;
};
/// A file whose content violates its format.
class FormatError : public IoError {
 public:
  using IoError::IoError;
};

/// An allocation that failed or that a limit forbids.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};
/// A plan that exceeds the byte budget; nothing has run.
class BudgetError : public OutOfMemory {
 public:
  using OutOfMemory::OutOfMemory;
};

/// An operator that cannot be cut exactly along a dimension.
class SplitError : public Error {
 public:
  using Error::Error;
};
/// A graph that is not linear in the asked variable.
class NotLinearError : public Error {
 public:
  using Error::Error;
};
/// A root of a graph that is neither input, constant nor shared variable.
class MissingInputError : public Error {
 public:
  using Error::Error;
};
/// A data cycle that an edit of a graph would close.
class CycleError : public Error {
 public:
  using Error::Error;
};
/// An edit of a graph that its contract forbids.
class ReplaceError : public Error {
 public:
  using Error::Error;
};
/// A container that the calling thread already holds.
class StateError : public Error {
 public:
  using Error::Error;
};
/// A foreign exception out of an Op.
class OpError : public Error {
 public:
  using Error::Error;
};
/// Something this version does not do.
class NotSupported : public Error {
 public:
  using Error::Error;
};
/// A fault of this library.
class InternalError : public Error {
 public:
  using Error::Error;
};

}  // namespace palimpsest
