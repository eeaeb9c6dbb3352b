// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/solve/frame/checkpoint.hpp"

#include <complex>
#include <cstring>
#include <string_view>

#include "palimpsest/base/error.hpp"
#include "palimpsest/base/failure.hpp"
#include "palimpsest/tensor/archive.hpp"
#include "palimpsest/tensor/checked_json.hpp"
#include "palimpsest/tensor/content_hash.hpp"

namespace palimpsest {
namespace {

using io_detail::CheckedJson;
using io_detail::Json;

constexpr const char* kKind = "solve";

void add_text(std::string_view text, ContentHasher& hash) { hash.add(text.data(), text.size()); }

// Hashes every bit of a number: messages show only six digits.
void add_attribute(const Attribute& a, ContentHasher& hash) {
  if (a.is_tensor()) return hash.add(a.as_tensor());
  if (a.is_list()) {
    for (const Attribute& entry : a.as_list()) add_attribute(entry, hash);
    return;
  }
  const bool is_number = a.kind() == Attribute::Kind::real || a.kind() == Attribute::Kind::complex;
  if (!is_number) return add_text(a.str(), hash);
  const std::complex<double> value = a.as_complex();
  hash.add(&value, sizeof(value));
}

template <class Named>
void add_parameters_and_attributes(const Named& of, ContentHasher& hash) {
  for (const auto& [name, p] : of.params()) {
    add_text(name, hash);
    if (p.present()) hash.add(p.value());
  }
  for (const auto& [name, a] : of.attrs()) {
    add_text(name, hash);
    add_attribute(a, hash);
  }
}

void add_operator(const NamedLinop& A, ContentHasher& hash) {
  add_text(A.str(), hash);
  add_parameters_and_attributes(A, hash);
  for (const NamedLinop& child : A.linops()) add_operator(child, hash);
}

void add_function(const Prox& g, ContentHasher& hash) {
  add_text(g.str(), hash);
  add_parameters_and_attributes(g, hash);
  for (const Prox& part : g.parts()) add_function(part, hash);
  for (const NamedLinop& A : g.linops()) add_operator(A, hash);
}

std::string digits_of(const Tensor& t) {
  ContentHasher hash;
  hash.add(t);
  return hash.digits();
}

// Text as messages show it; of numbers also their bits.
std::string text_of(const Attribute& a) {
  if (a.is_tensor()) return digits_of(a.as_tensor());
  if (a.kind() != Attribute::Kind::real && !a.is_list()) return a.str();
  ContentHasher hash;
  add_attribute(a, hash);
  return a.str() + " " + hash.digits();
}

// Rows of bytes that are read back by the same build.
template <class T>
Tensor bytes_of(const std::vector<T>& rows) {
  static_assert(std::is_trivially_copyable_v<T>);
  static std::byte none{};
  const auto bytes = static_cast<index_t>(rows.size() * sizeof(T));
  auto* data = rows.empty() ? &none : const_cast<std::byte*>(std::as_bytes(std::span(rows)).data());
  return Tensor::from_blob(data, DType::uint8, {bytes}, {1}, {}, /*writable=*/false);
}

template <class T>
std::vector<T> rows_of(const Tensor& bytes, const CheckedJson& json) {
  if (bytes.dtype() != DType::uint8 || bytes.rank() != 1 ||
      bytes.numel() % static_cast<index_t>(sizeof(T)) != 0) {
    json.fail("is not a list of rows");
  }
  std::vector<T> rows(static_cast<std::size_t>(bytes.numel()) / sizeof(T));
  const Tensor dense = on_host(bytes).contiguous();
  if (!rows.empty()) std::memcpy(rows.data(), dense.raw_data(), rows.size() * sizeof(T));
  return rows;
}

}  // namespace

Fingerprint fingerprint(const SolverType& type, const Problem& problem, const Tensor& b) {
  Fingerprint parts = {{"solver", std::string(type.name)},
                       {"b", problem.b_type().str()},
                       {"batch", problem.batch().str()}};
  for (const auto& [name, a] : problem.attrs()) {
    parts.emplace_back(name, text_of(a));
  }
  for (const auto& [name, A] : problem.ops()) {
    ContentHasher hash;
    add_operator(A, hash);
    parts.emplace_back("operator " + name, arrow(A.ishape(), A.oshape()) + " " + hash.digits());
  }
  for (const auto& [name, g] : problem.proxes()) {
    ContentHasher hash;
    add_function(g, hash);
    parts.emplace_back("function " + name, g.str() + " " + hash.digits());
  }
  parts.emplace_back("data of b", digits_of(b));
  return parts;
}

void write_checkpoint(const std::string& path, const SolverType& type, const Fingerprint& of,
                      const Checkpoint& run, const NamedTensors& state) {
  ArchiveWriter archive(kKind);
  Json content;
  content["solver"] = type.name;
  content["version"] = type.version;
  for (const auto& [name, text] : of) content["problem"].push_back({name, text});
  content["iteration"] = run.iteration;
  content["restarted"] = run.restarted;
  content["exponent"] = run.exponent;
  content["is_zero"] = run.is_zero;
  std::vector<double> numbers{run.seconds, run.norm_b};
  numbers.insert(numbers.end(), run.setup_numbers.begin(), run.setup_numbers.end());
  const Tensor packed = bytes_of(numbers), history = bytes_of(run.history);
  const Tensor growth = bytes_of(run.growth), objectives = bytes_of(run.objectives);
  content["numbers"] = archive.add(packed);
  content["history"] = archive.add(history);
  content["growing"] = archive.add(growth);
  content["objectives"] = archive.add(objectives);
  content["ended"] = Json::array();
  for (const auto& status : run.ended) {
    content["ended"].push_back(status ? static_cast<int>(*status) : -1);
  }
  content["iterations"] = run.iterations;
  content["applications"] = Json::array();
  for (const auto& [name, n] : run.applications) content["applications"].push_back({name, n});
  content["state"] = Json::array();
  for (const auto& [name, t] : state) content["state"].push_back({name, archive.add(t)});
  archive.save(path, io_detail::text_of_json(content));
}

namespace {

Checkpoint run_of(const CheckedJson& root, const Archive& archive) {
  Checkpoint run;
  const auto tensor = [&](const CheckedJson& json) -> const Tensor& {
    return archive.tensor(static_cast<std::size_t>(json.size_value()));
  };
  const auto small = [](const CheckedJson& json) {
    const std::int64_t n = json.integer();
    if (n < -100'000 || n > INT32_MAX) json.fail("is out of range");
    return static_cast<int>(n);
  };
  run.iteration = small(root.at("iteration"));
  if (root.has("restarted")) run.restarted = small(root.at("restarted"));
  run.exponent = small(root.at("exponent"));
  run.is_zero = root.at("is_zero").flag();
  auto numbers = rows_of<double>(tensor(root.at("numbers")), root.at("numbers"));
  if (numbers.size() < 2) root.at("numbers").fail("has too few entries");
  run.seconds = numbers[0];
  run.norm_b = numbers[1];
  run.setup_numbers.assign(numbers.begin() + 2, numbers.end());
  run.history = rows_of<Record>(tensor(root.at("history")), root.at("history"));
  if (root.has("growing")) {
    run.growth = rows_of<StepGrowth>(tensor(root.at("growing")), root.at("growing"));
  }
  if (root.has("objectives")) {
    run.objectives = rows_of<double>(tensor(root.at("objectives")), root.at("objectives"));
  }
  const CheckedJson ended = root.at("ended"), iterations = root.at("iterations");
  for (std::size_t i = 0; i < ended.size(); ++i) {
    const int status = small(ended.element(i, "status"));
    if (status > static_cast<int>(Status::cancelled)) ended.fail("has an unknown status");
    run.ended.push_back(status < 0 ? std::nullopt : std::optional(static_cast<Status>(status)));
  }
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    run.iterations.push_back(small(iterations.element(i, "iterations")));
  }
  const CheckedJson applications = root.at("applications");
  for (std::size_t i = 0; i < applications.size(); ++i) {
    const CheckedJson entry = applications.element(i, "application");
    run.applications[entry.element(0, "name").text()] = entry.element(1, "count").integer();
  }
  return run;
}

void compare(const CheckedJson& got, const Fingerprint& expected, const std::string& who) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto& [name, text] = expected[i];
    std::string found = "nothing";
    if (i < got.size()) {
      const CheckedJson entry = got.element(i, "part of the problem");
      if (entry.element(0, "name").text() == name) found = entry.element(1, "text").text();
    }
    if (found == text) continue;
    throw ValueError(who + "does not fit: " + name + ": the checkpoint has " + found +
                     ", expected " + text);
  }
  if (got.size() > expected.size()) throw ValueError(who + "does not fit: it has more parts");
}

}  // namespace

LoadedCheckpoint read_checkpoint(const std::string& path, const SolverType& type,
                                 const Fingerprint& expected) {
  const std::string who = "[" + std::string(type.name) + "] checkpoint '" + path + "': ";
  try {
    const Archive archive = Archive::load(path, {.verify = true});
    if (archive.kind() != kKind) {
      io_detail::fail_format(
          path, "kind: got " + io_detail::quoted(archive.kind()) + ", expected 'solve'");
    }
    const Json content = io_detail::parse_json(archive.content());
    const CheckedJson root(content, path, "the content");
    const std::string& solver = root.at("solver").text();
    const std::int64_t version = root.at("version").integer();
    if (solver == type.name && version != type.version) {
      throw FormatError(who + "version: got " + std::to_string(version) + ", expected " +
                        std::to_string(type.version));
    }
    compare(root.at("problem"), expected, who);
    LoadedCheckpoint loaded{run_of(root, archive), {}};
    const CheckedJson state = root.at("state");
    for (std::size_t i = 0; i < state.size(); ++i) {
      const CheckedJson entry = state.element(i, "state");
      const auto number = static_cast<std::size_t>(entry.element(1, "tensor").size_value());
      loaded.state.emplace_back(entry.element(0, "name").text(), archive.tensor(number));
    }
    return loaded;
  } catch (const FormatError& error) {
    const std::string text = error.what();
    throw FormatError(text.starts_with(who) ? text : who + text);
  }
}

}  // namespace palimpsest
