// SPDX-License-Identifier: Apache-2.0
#include "support/checked_calls.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace palimpsest::testing {
namespace {

using Tensors = std::vector<Tensor>;

// A copy with the same strides, inside a larger array.
Tensor copy_as_it_lies(const Tensor& t) {
  index_t lowest = 0, highest = 0;
  for (std::size_t k = 0; k < t.rank(); ++k) {
    const index_t reach = t.strides()[k] * (t.shape()[k] - 1);
    (reach < 0 ? lowest : highest) += reach;
  }
  const index_t n = highest - lowest + 1;
  const Tensor whole = Tensor::full({3 * n}, -7.0);
  whole(slice(n, 2 * n)).copy_from(t.as_strided({n}, {1}, t.offset() + lowest));
  return whole.as_strided(t.shape(), t.strides(), n - lowest);
}

Tensors copies(const Tensors& list) {
  Tensors result;
  for (const Tensor& t : list) result.push_back(t.clone());
  return result;
}

void expect_same(const Tensors& now, const Tensors& before, const char* what) {
  for (std::size_t i = 0; i < now.size(); ++i) {
    EXPECT_TRUE(equal(now[i].clone(), before[i])) << what << " " << i;
  }
}

}  // namespace

CheckedCalls::CheckedCalls(RandomProgram& program, Function f, int windows)
    : program_(program), function_(std::move(f)), windows_percent_(windows) {}

void CheckedCalls::call(const Function* other) {
  change_containers();
  if (other != nullptr) set_states(states());  // dense: sums depend on the layout
  const Tensors arguments = this->arguments();
  std::vector<bool> given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    given.push_back(!program_.has_default(i) || program_.chance(50));
  }
  Tensors expected_states;
  const Tensors expected = other == nullptr
                               ? of_loops(arguments, given, expected_states)
                               : of_function(*other, arguments, given, expected_states);
  const Tensors untouched = unlent(arguments, given), before = copies(untouched);
  const Tensors outside = outside_of_loans(arguments), of_defaults = defaults();
  const std::vector<bool> is_workspace = workspaces(arguments, given);

  const bool into_windows = program_.chance(windows_percent_);
  const Tensors results = called(function_, arguments, given, into_windows ? &expected : nullptr);

  for (std::size_t k = 0; k < expected_states.size(); ++k) {
    if (is_workspace[k]) expected_states[k] = states()[k];
  }
  ASSERT_EQ(results.size(), expected.size());
  expect_values(results, expected, "result");
  expect_values(states(), expected_states, "state after the call");
  expect_same(untouched, before, "argument that is not lent");
  expect_same(outside_of_loans(arguments), outside, "array around a loan");
  expect_same(defaults(), of_defaults, "default value");
  check_kept();
  check_independence(results);
  // Writes of the user to a result must not reach anything else.
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (program_.outputs()[i].options.borrow || has_internal_overlap(results[i])) continue;
    Tensor result = results[i];
    if (program_.chance(50)) result.fill(1e9);
    kept_.emplace_back(result, result.clone());
  }
  expect_values(states(), expected_states, "state after writing results");
  check_kept();
}

Tensors CheckedCalls::arguments() {
  Tensors result;
  for (std::size_t i = 0; i < program_.inputs().size(); ++i) {
    result.push_back(argument(program_.shape_of_input(i), result));
  }
  return result;
}

Tensors CheckedCalls::states() const {
  Tensors result;
  for (const SharedVariable& s : program_.shared()) result.push_back(s.get_value().clone());
  return result;
}

void CheckedCalls::set_states(const Tensors& values) {
  for (std::size_t k = 0; k < values.size(); ++k) program_.shared()[k].set_value(values[k].clone());
}

void CheckedCalls::change_containers() {
  for (SharedVariable& s : program_.shared()) {
    if (program_.chance(20)) {
      const Tensor value = program_.fresh(s.container().value().shape());
      s.set_value(value, {.borrow = program_.chance(50)});
      if (program_.chance(50)) lent_.push_back(value);
    }
    if (program_.chance(20)) kept_.emplace_back(s.get_value(), s.get_value().clone());
  }
}

// -- arguments -----------------------------------------------------------------------------------

Tensor CheckedCalls::argument(const Extents& shape, const Tensors& before) {
  Extents twice = shape;
  twice[0] *= 2;
  const auto has_shape = [&](const auto& t) { return t.shape() == shape; };
  switch (program_.is_rounded() ? 0 : program_.pick(9)) {
    case 0: {
      const auto same = std::find_if(before.begin(), before.end(), has_shape);
      return same == before.end() || program_.is_rounded() ? alone(shape) : *same;
    }
    case 1: {
      arrays_.push_back(program_.fresh(twice));
      return arrays_.back()(slice({}, {}, 2));
    }
    case 2:
    case 3: {
      // Between the elements of an earlier argument, or over some of them.
      Tensors wide;
      for (const Tensor& array : arrays_) {
        if (array.shape() == twice) wide.push_back(array);
      }
      if (wide.empty()) return alone(shape);
      const Tensor& array = wide[program_.pick(wide.size())];
      return program_.chance(50) ? array(slice(1, {}, 2)) : array(slice(0, shape[0]));
    }
    case 4: {
      const Tensor value = program_.fresh(shape);
      kept_.emplace_back(value.lazy_clone(), value.clone());
      return value;
    }
    case 5: {
      if (!program_.device().is_host()) return alone(shape);
      auto memory =
          std::make_shared<std::vector<double>>(program_.fresh(shape).to_vector<double>());
      return Tensor::from_blob(
          memory->data(), DType::float64, shape, contiguous_strides(shape), [memory] {},
          program_.chance(50));
    }
    case 6:
      for (const SharedVariable& s : program_.shared()) {
        const Tensor value = s.get_value({.borrow = true, .return_internal_type = true});
        if (has_shape(value) && program_.chance(60)) return value;
      }
      return alone(shape);
    default:
      return alone(shape);
  }
}

// An array with any layout, inside a larger one.
Tensor CheckedCalls::alone(const Extents& shape) {
  Axes axes;
  for (std::size_t k = shape.size(); k-- > 0;) axes.push_back(static_cast<index_t>(k));
  const Tensor value = program_.fresh(shape);
  Tensor laid_out = value;
  const auto in_wide = [&](index_t more, const Index& range) {
    Extents extents = shape;
    extents.back() = 2 * extents.back() + more;
    const Tensor wide = Tensor::full(extents, -99.0, program_.device());
    laid_out = wide(ellipsis, range);
    laid_out.copy_from(value);
  };
  switch (program_.pick(8)) {
    case 0:
      laid_out = value.flip(Axes{0});
      break;
    case 1:
      laid_out = value.flip(axes);
      break;
    case 2:
      laid_out = program_.fresh(value.permute(axes).shape()).permute(axes);
      break;
    case 3:
      return value(slice(0, 1)).expand(shape);
    case 4:
      in_wide(1, slice(1, {}, 2));
      break;
    case 5:
      in_wide(3, slice(1, shape.back() + 1));
      break;
    default:
      break;
  }
  if (program_.is_rounded()) laid_out = copy_as_it_lies(laid_out);
  const auto n = static_cast<index_t>(laid_out.storage().nbytes() / sizeof(double));
  arrays_.push_back(laid_out.as_strided({n}, {1}, 0));
  return laid_out;
}

// -- calls ---------------------------------------------------------------------------------------

Tensors CheckedCalls::of_loops(const Tensors& arguments, const std::vector<bool>& given,
                               Tensors& states) {
  const auto plain = [](const Tensor& t) { return Plain{t.shape(), t.to_vector<double>()}; };
  std::vector<Plain> inputs, now;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Variable& v = program_.inputs()[i].variable;
    inputs.push_back(plain(given[i] ? arguments[i] : function_.container(v).value()));
  }
  for (const Tensor& t : this->states()) now.push_back(plain(t));
  Tensors results;
  for (const Plain& p : program_.run(inputs, now)) results.push_back(Tensor::from(p.data, p.shape));
  for (const Plain& p : now) states.push_back(Tensor::from(p.data, p.shape));
  return results;
}

Tensors CheckedCalls::of_function(const Function& other, const Tensors& arguments,
                                  const std::vector<bool>& given, Tensors& states) {
  const Tensors before = this->states();
  Tensors own;
  for (const Tensor& t : arguments) own.push_back(copy_as_it_lies(t));
  const Tensors results = copies(called(other, own, given, nullptr));
  states = this->states();
  set_states(before);
  return results;
}

// Positional up to the first argument that is not given; then by variable.
Tensors CheckedCalls::called(const Function& f, const Tensors& arguments,
                             const std::vector<bool>& given, const Tensors* destinations) {
  const auto n_first =
      static_cast<std::size_t>(std::find(given.begin(), given.end(), false) - given.begin());
  if (destinations == nullptr && n_first == given.size() && program_.chance(50)) {
    Tensors results(program_.outputs().size());
    f.call(arguments, results);
    return results;
  }
  std::vector<Keyword> keywords;
  for (std::size_t i = n_first; i < given.size(); ++i) {
    if (given[i]) keywords.push_back(kw(program_.inputs()[i].variable, arguments[i]));
  }
  std::vector<Argument> all;
  all.reserve(given.size());
  for (std::size_t i = 0; i < n_first; ++i) all.emplace_back(arguments[i]);
  for (const Keyword& keyword : keywords) all.emplace_back(keyword);
  if (destinations == nullptr) return f.call(std::span<const Argument>(all));
  Windows& windows = windows_.emplace_back();
  for (const Tensor& t : *destinations) {
    windows.add(t.shape(), t.dtype(), window_layout(program_.pick(100)));
  }
  Tensors outs = windows.tensors();
  f.call_into(outs, std::span<const Argument>(all));
  windows.expect_intact();
  return outs;
}

// -- what must hold ------------------------------------------------------------------------------

// Arguments that are not lent, whatever memory they share.
Tensors CheckedCalls::unlent(const Tensors& arguments, const std::vector<bool>& given) const {
  Tensors result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (given[i] && !program_.is_lent(i)) result.push_back(arguments[i]);
  }
  return result;
}

// All arrays of the user, with zeros where an argument is lent.
Tensors CheckedCalls::outside_of_loans(const Tensors& arguments) const {
  Tensors result;
  for (const Tensor& array : arrays_) {
    Tensor copy = array.clone();
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const Tensor& t = arguments[i];
      if (!program_.is_lent(i) || !shares_storage(t, array)) continue;
      copy.as_strided(t.shape(), t.strides(), t.offset()).fill(0.0);
    }
    result.push_back(copy);
  }
  return result;
}

Tensors CheckedCalls::defaults() const {
  Tensors result;
  for (std::size_t i = 0; i < program_.inputs().size(); ++i) {
    if (!program_.has_default(i)) continue;
    result.push_back(function_.container(program_.inputs()[i].variable).value().clone());
  }
  return result;
}

// Containers that the function does not use and whose memory the user lent as workspace.
std::vector<bool> CheckedCalls::workspaces(const Tensors& arguments,
                                           const std::vector<bool>& given) const {
  const auto known = function_.shared_variables();
  std::vector<bool> result;
  for (const SharedVariable& s : program_.shared()) {
    bool lent = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      lent = lent ||
             (given[i] && program_.is_lent(i) && overlaps(arguments[i], s.container().value()));
    }
    const bool is_known = std::find(known.begin(), known.end(), s.container_ptr()) != known.end();
    result.push_back(lent && !is_known);
  }
  return result;
}

void CheckedCalls::expect_values(const Tensors& now, const Tensors& expected,
                                 const char* what) const {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    // The plain loops may give a zero of the other sign.
    const bool is_same = program_.is_rounded()
                             ? equal(now[i].clone(), expected[i])
                             : now[i].shape() == expected[i].shape() &&
                                   now[i].to_vector<double>() == expected[i].to_vector<double>();
    EXPECT_TRUE(is_same) << what << " " << i << "\n" << now[i] << "\nexpected\n" << expected[i];
  }
}

void CheckedCalls::check_kept() const {
  for (const auto& [tensor, copy] : kept_) EXPECT_TRUE(equal(tensor.clone(), copy)) << "kept";
}

void CheckedCalls::check_independence(const Tensors& results) const {
  const auto is_borrowed = [&](std::size_t i) { return program_.outputs()[i].options.borrow; };
  for (std::size_t i = 0; i < program_.shared().size(); ++i) {
    const Tensor value = program_.shared()[i].container().value();
    EXPECT_FALSE(has_internal_overlap(value));
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(shares_storage(value, program_.shared()[j].container().value()));
    }
    for (std::size_t j = 0; j < results.size(); ++j) {
      EXPECT_FALSE(!is_borrowed(j) && shares_storage(value, results[j])) << "container and result";
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(!is_borrowed(i) && !is_borrowed(j) && shares_storage(results[i], results[j]))
          << "two results";
    }
  }
}

}  // namespace palimpsest::testing
