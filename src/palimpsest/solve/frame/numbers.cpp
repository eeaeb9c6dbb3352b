// SPDX-License-Identifier: Apache-2.0

#include "palimpsest/solve/frame/prelude.hpp"
#include "palimpsest/solve/frame/program.hpp"

namespace palimpsest {

bool Numbers::has(std::string_view name) const {
  return std::any_of(sources_.begin(), sources_.end(), [&](const Source& source) {
    return std::find(source.names.begin(), source.names.end(), name) != source.names.end();
  });
}

double Numbers::operator[](std::string_view name) const {
  for (const Source& source : sources_) {
    const auto found = std::find(source.names.begin(), source.names.end(), name);
    if (found == source.names.end() || source.values.empty()) continue;
    const auto index = static_cast<std::size_t>(found - source.names.begin());
    return source.values[index * batch_count_ + element_];
  }
  throw NameError("numbers: there is no '" + std::string(name) + "'");
}

void NumberTable::set_names(From from, std::span<const std::string> names) {
  Part& part = parts_[static_cast<std::size_t>(from)];
  part.names = names;
  if (part.values.size() < names.size() * batch_count_) {
    part.values.resize(names.size() * batch_count_);
  }
}

void NumberTable::set_values(From from, const Tensor& packed) {
  Part& part = parts_[static_cast<std::size_t>(from)];
  const std::size_t count = part.names.size() * batch_count_;
  const bool is_single = packed.dtype() == DType::float32;
  for (std::size_t i = 0; i < count; ++i) {
    part.values[i] =
        is_single ? static_cast<double>(packed.data<float>()[i]) : packed.data<double>()[i];
  }
}

void NumberTable::restore_setup(std::span<const std::string> names,
                                const std::vector<double>& values) {
  parts_[static_cast<std::size_t>(From::setup)] = {names, values};
}

bool NumberTable::is_finite(From from, std::size_t element) const {
  const Part& part = parts_[static_cast<std::size_t>(from)];
  for (std::size_t k = 0; k < part.names.size(); ++k) {
    const double value = part.values[k * batch_count_ + element];
    // Outside of a constraint the objective is infinite.
    const bool may_be_infinite = part.names[k] == "objective" && value > 0;
    if (!std::isfinite(value) && !may_be_infinite) return false;
  }
  return true;
}

Numbers NumberTable::of(std::size_t element, int iteration, double norm_b, double tolerance) const {
  Numbers n;
  for (std::size_t k = 0; k < parts_.size(); ++k) {
    n.sources_[k] = {parts_[k].names, parts_[k].values};
  }
  n.element_ = element;
  n.batch_count_ = batch_count_;
  n.iteration_ = iteration;
  n.norm_b_ = norm_b;
  n.tolerance_ = tolerance;
  return n;
}

}  // namespace palimpsest
