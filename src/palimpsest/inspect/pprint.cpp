// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <unordered_map>

#include "palimpsest/inspect/print.hpp"
#include "palimpsest/inspect/root_text.hpp"

namespace palimpsest {
namespace {

// Longer formulas are unreadable, and shared parts can make one grow without bounds.
constexpr std::size_t kLongest = 20000;

// A piece of a formula. Parentheses go around a piece that binds more weakly than its surroundings.
struct Piece {
  std::string text;
  int strength = 3;  // 0 sum, 1 product, 2 sign, 3 atom
};

std::string within(const Piece& piece, int strength) {
  return piece.strength < strength ? "(" + piece.text + ")" : piece.text;
}

std::string lower(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

Piece combined(const Apply& node, int output, const std::vector<Piece>& inputs) {
  std::string name = node.op().name();
  const std::string suffix = "InPlace";
  if (name.size() > suffix.size() && name.ends_with(suffix)) {
    name.resize(name.size() - suffix.size());
  }
  const auto infix = [&](const char* sign, int strength, int right) {
    return Piece{within(inputs[0], strength) + sign + within(inputs[1], right), strength};
  };
  if (name == "Add" && inputs.size() == 2) return infix(" + ", 0, 0);
  if (name == "Sub" && inputs.size() == 2) return infix(" - ", 0, 1);
  if (name == "Mul" && inputs.size() == 2) return infix(" * ", 1, 1);
  if (name == "Div" && inputs.size() == 2) return infix(" / ", 1, 2);
  if (name == "Neg" && inputs.size() == 1) return {"-" + within(inputs[0], 2), 2};
  std::string text = lower(name) + "(";
  for (std::size_t i = 0; i < inputs.size(); ++i) text += (i > 0 ? ", " : "") + inputs[i].text;
  text += ")";
  if (node.output_count() > 1) text += "[" + std::to_string(output) + "]";
  return {std::move(text), 3};
}

}  // namespace

std::string root_text(const Variable& v) {
  if (!v.name().empty() || !v.is_constant() || v.constant_value().numel() != 1) return v.str();
  const std::string text = to_string(v.constant_value().view(Extents{}));
  const std::size_t begin = text.find('('), end = text.find(", dtype", begin);
  return begin < end ? text.substr(begin + 1, end - begin - 1) : v.str();
}

std::string pprint(const Variable& v) {
  std::unordered_map<const VariableNode*, Piece> pieces;
  const auto piece_of = [&](const Variable& x) -> Piece {
    const auto it = pieces.find(x.node());
    return it == pieces.end() ? Piece{root_text(x), 3} : it->second;
  };
  for (const Apply& node : applications_of({&v, 1})) {
    std::vector<Piece> inputs;
    for (const Variable& input : node.inputs()) inputs.push_back(piece_of(input));
    for (std::size_t k = 0; k < node.output_count(); ++k) {
      Piece piece = combined(node, static_cast<int>(k), inputs);
      if (piece.text.size() > kLongest) piece = {"...", 3};
      pieces[node.output(k).node()] = std::move(piece);
    }
  }
  return piece_of(v).text;
}

}  // namespace palimpsest
