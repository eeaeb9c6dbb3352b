// SPDX-License-Identifier: Apache-2.0
#include "palimpsest/cli/option_words.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

namespace palimpsest::cli {
namespace {

constexpr OptionWord kWords[] = {
    {"Image.names", "--axes"},
    {"ScanOptions.as", "--as"},
    {"ScanOptions.contrast", "--contrast"},
    {"ScanOptions.encoded_pixels", "--matrix encoded"},
    {"ScanOptions.field_of_view_mm", "--fov"},
    {"ScanOptions.matrix", "--matrix"},
    {"ScanOptions.phase", "--cardiac-phase"},
    {"ScanOptions.prewhiten", "--prewhiten"},
    {"ScanOptions.readouts_per_frame", "--frames"},
    {"ScanOptions.repetition", "--repetition"},
    {"ScanOptions.set", "--set"},
    {"ScanOptions.slice", "--slice"},
    {"ScanOptions.trajectory", "--trajectory"},
    {"ScanReconstructionOptions.basis", "--basis"},
    {"ScanReconstructionOptions.budget", "--memory"},
    {"ScanReconstructionOptions.checkpoint", "--checkpoint"},
    {"ScanReconstructionOptions.iterations", "--iterations"},
    {"ScanReconstructionOptions.maps", "--maps"},
    {"ScanReconstructionOptions.partial", "--partial"},
    {"ScanReconstructionOptions.phase", "--phase"},
    {"ScanReconstructionOptions.regularizers", "--reg"},
    {"ScanReconstructionOptions.resume", "--resume"},
    {"ScanReconstructionOptions.sets", "--sets"},
    {"ScanReconstructionOptions.share_maps", "--share-maps"},
    {"ScanReconstructionOptions.start", "--start"},
    {"ScanReconstructionOptions.tolerance", "--tolerance"},
    {"ScanReconstructionOptions.virtual_coils", "--compress"},
    {"ScanReconstructionOptions.weights", "--weights"},
    {"compress_coils()", "palimpsest compress"},
    {"fake_kspace()", "palimpsest simulate --image"},
};

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The row whose name begins the text and ends where an identifier does; null: none.
const OptionWord* word_at(std::string_view text) {
  const auto* const found =
      std::find_if(std::begin(kWords), std::end(kWords), [&](const OptionWord& row) {
        const std::string_view name = row.name;
        if (!text.starts_with(name)) return false;
        return name.size() == text.size() || !is_of_name(text[name.size()]);
      });
  return found == std::end(kWords) ? nullptr : found;
}

}  // namespace

std::span<const OptionWord> option_words() { return kWords; }

std::string in_words_of_command(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_inside = at > 0 && is_of_name(text[at - 1]);
    const OptionWord* const row = is_inside ? nullptr : word_at(std::string_view(text).substr(at));
    result += row == nullptr ? std::string(1, text[at]) : row->word;
    at += row == nullptr ? 1 : std::string_view(row->name).size();
  }
  return result;
}

}  // namespace palimpsest::cli
