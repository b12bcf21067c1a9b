// Reads the values of one table of settings, each with its bounds and a remedy where it is wrong.
//
// All of it is in the header, so that the parser of TOML is compiled once, into
// settings_parser.cc.
#ifndef TOOLS_COLLECTOR_CONFIG_TABLE_READER_H_
#define TOOLS_COLLECTOR_CONFIG_TABLE_READER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "tools/collector/config/settings_errors.h"
#include "tools/collector/config/toml.h"
#include "tools/collector/config/values.h"
#include "tools/common/text.h"

namespace collector {

inline constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// `text` in quotes, as it may be shown in an error.
inline std::string Shown(std::string_view text) {
  constexpr std::size_t kMost = 80;
  return absl::StrCat("'", tools::Printable(text.substr(0, kMost)),
                      text.size() > kMost ? "..." : "", "'");
}

// Which of `names` somebody may have meant who wrote `text`, or all of them.
inline std::string Suggestion(std::string_view text, const std::vector<std::string>& names) {
  const std::string nearest = Nearest(text, names);
  if (!nearest.empty()) return absl::StrCat("did you mean '", nearest, "'?");
  return absl::StrCat("known are ", absl::StrJoin(names, ", "));
}

// The file at hand.
struct SettingsFile {
  std::string name;
  SettingsErrors* errors;

  void Add(const toml::source_region& place, const std::string& what) const {
    errors->Add(name, place.begin.line, place.begin.column, what);
  }
};

// One table of a file. It knows the keys that were asked for, and so those that nobody knows.
class TableReader {
 public:
  // `title`: as it stands in the file, e.g. "[session.shop]".
  TableReader(const SettingsFile& file, const toml::table& table, std::string title)
      : file_(file), table_(table), title_(std::move(title)) {}

  const std::string& title() const { return title_; }
  const toml::table& table() const { return table_; }

  const toml::node* Find(const char* key) {
    known_.emplace_back(key);
    return table_.get(key);
  }
  bool Has(const char* key) const { return table_.contains(key); }

  void Add(const toml::source_region& place, const std::string& what) {
    file_.Add(place, absl::StrCat(title_, " ", what));
  }
  // An error of the value of `key`, or of the table if it has none.
  void AddAt(const char* key, const std::string& what) {
    const toml::node* node = table_.get(key);
    Add(node != nullptr ? node->source() : table_.source(), absl::StrCat(key, ": ", what));
  }

  std::optional<std::string> String(const char* key, const char* form) {
    const toml::node* node = Find(key);
    if (node == nullptr) return std::nullopt;
    if (auto value = node->value_exact<std::string>()) {
      if (value->find('\0') == std::string::npos) return value;
    }
    AddAt(key, absl::StrCat("it is not a text; use e.g. ", form));
    return std::nullopt;
  }

  void Bool(const char* key, bool* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    if (const auto read = node->value_exact<bool>()) {
      *value = *read;
    } else {
      AddAt(key, "it is neither true nor false");
    }
  }

  void Count(const char* key, std::uint64_t least, std::uint64_t most, std::uint64_t* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    const auto read = node->value_exact<std::int64_t>();
    if (read && *read >= 0 && static_cast<std::uint64_t>(*read) >= least &&
        static_cast<std::uint64_t>(*read) <= most) {
      *value = static_cast<std::uint64_t>(*read);
    } else {
      AddAt(key, absl::StrCat("it is not a number from ", least, " to ", most));
    }
  }

  // `off`: the text "off" stands for 0.
  template <typename Size>
  void Bytes(const char* key, std::uint64_t least, std::uint64_t most, bool off, Size* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    std::optional<std::uint64_t> read;
    if (const auto number = node->value_exact<std::int64_t>(); number && *number >= 0) {
      read = static_cast<std::uint64_t>(*number);
    } else if (const auto text = node->value_exact<std::string>()) {
      read = off && *text == "off" ? 0 : ParseSize(*text);
    }
    if (read && ((*read >= least && *read <= most) || (off && *read == 0))) {
      *value = static_cast<Size>(*read);
      return;
    }
    AddAt(key, absl::StrCat("it is not a size from ", FormatSize(least),
                            most == kNoLimit ? " up" : absl::StrCat(" to ", FormatSize(most)),
                            "; use a number of bytes or a text such as \"64M\"",
                            off ? ", or \"off\"" : ""));
  }

  // `off`: the text "off" stands for no end.
  void Duration(const char* key, absl::Duration least, absl::Duration most, bool off,
                absl::Duration* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    std::optional<absl::Duration> read;
    if (const auto text = node->value_exact<std::string>()) {
      if (off && *text == "off") {
        *value = absl::InfiniteDuration();
        return;
      }
      read = ParseDuration(*text);
    }
    if (read && *read >= least && *read <= most) {
      *value = *read;
      return;
    }
    AddAt(key, absl::StrCat("it is not a time from ", absl::FormatDuration(least), " to ",
                            absl::FormatDuration(most), "; use a text such as \"30s\", ",
                            "\"10min\" or \"7d\"", off ? ", or \"off\"" : ""));
  }

  // The elements; null, with or without an error, if there are none.
  const toml::array* Array(const char* key, std::size_t most, const char* form) {
    const toml::node* node = Find(key);
    if (node == nullptr) return nullptr;
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty()) {
      AddAt(key, absl::StrCat("it is not a list; use e.g. ", form));
      return nullptr;
    }
    if (array->size() > most) {
      AddAt(key, absl::StrCat("it has more than ", most, " elements"));
      return nullptr;
    }
    return array;
  }

  std::optional<TableReader> Table(const char* key) {
    const toml::node* node = Find(key);
    if (node == nullptr) return std::nullopt;
    if (const toml::table* table = node->as_table()) {
      return TableReader(file_, *table,
                         absl::StrCat(title_.substr(0, title_.size() - 1), ".", key, "]"));
    }
    AddAt(key, "it is not a table");
    return std::nullopt;
  }

  // To be called once all keys have been asked for.
  void RefuseOthers() {
    for (const auto& [key, value] : table_) {
      if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
      Add(key.source(),
          absl::StrCat("unknown key ", Shown(key.str()), "; ", Suggestion(key.str(), known_)));
    }
  }

 private:
  const SettingsFile& file_;
  const toml::table& table_;
  std::string title_;
  std::vector<std::string> known_;
};

}  // namespace collector

#endif  // TOOLS_COLLECTOR_CONFIG_TABLE_READER_H_
