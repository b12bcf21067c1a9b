// Reads the values of one table of settings, checks their limits, and reports errors with a remedy.
//
// All code is in the header, which only settings_parser.cc includes: another source would compile
// the TOML parser once more (toml.h).
#ifndef TOOLS_NETTRACED_CONFIG_TABLE_READER_H_
#define TOOLS_NETTRACED_CONFIG_TABLE_READER_H_

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
#include "tools/base/text.h"
#include "tools/base/values.h"
#include "tools/nettraced/config/nearest_name.h"
#include "tools/nettraced/config/settings_errors.h"
#include "tools/nettraced/config/toml.h"

namespace nettraced {

// Value of the parameter `most` of TableReader's functions that means "no upper limit".
inline constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

// Returns the first 80 bytes of `text` in quotes, in a form that is safe to show in an error.
inline std::string Shown(std::string_view text) {
  constexpr std::size_t kMost = 80;
  return absl::StrCat("'", base::Printable(text.substr(0, kMost)), text.size() > kMost ? "..." : "",
                      "'");
}

// Returns the end of an error message: a question with the name that the user probably meant by
// `text`, or a list of all names.
inline std::string Suggestion(std::string_view text, const std::vector<std::string>& names) {
  const std::string nearest = Nearest(text, names);
  if (!nearest.empty()) return absl::StrCat("did you mean '", nearest, "'?");
  return absl::StrCat("valid keys: ", absl::StrJoin(names, ", "));
}

// The file that is being read.
struct SettingsFile {
  std::string name;
  SettingsErrors* errors;

  void Add(const toml::source_region& place, const std::string& what) const {
    errors->Add(name, place.begin.line, place.begin.column, what);
  }
};

// Reads one table of a file. It remembers the requested keys, so that RefuseOthers can report all
// other keys.
class TableReader {
 public:
  // `title` is the head of the table as written in the file, e.g. "[session.shop]".
  TableReader(const SettingsFile& file, const toml::table& table, std::string title)
      : file_(file), table_(table), title_(std::move(title)) {}

  const std::string& title() const { return title_; }
  const toml::table& table() const { return table_; }

  // Returns the value of `key`, or null if there is none. Marks the key as known.
  const toml::node* Find(const char* key) {
    known_.emplace_back(key);
    return table_.get(key);
  }
  bool Has(const char* key) const { return table_.contains(key); }

  void Add(const toml::source_region& place, const std::string& what) {
    file_.Add(place, absl::StrCat(title_, " ", what));
  }
  // Adds an error at the value of `key`, or at the table if the key has no value.
  void AddAt(const char* key, const std::string& what) {
    const toml::node* node = table_.get(key);
    Add(node != nullptr ? node->source() : table_.source(), absl::StrCat(key, ": ", what));
  }

  // The following functions read the value of `key`. If the key is absent, they leave `*value`
  // unchanged or return nullopt. If the value is invalid, they do the same and add an error.
  // `least` and `most` are inclusive.

  // Returns a text. The error shows `form` as an example.
  std::optional<std::string> String(const char* key, const char* form) {
    const toml::node* node = Find(key);
    if (node == nullptr) return std::nullopt;
    if (auto value = node->value_exact<std::string>()) {
      if (value->find('\0') == std::string::npos) return value;
    }
    AddAt(key, absl::StrCat("must be a string without NUL characters; use e.g. ", form));
    return std::nullopt;
  }

  void Bool(const char* key, bool* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    if (const auto read = node->value_exact<bool>()) {
      *value = *read;
    } else {
      AddAt(key, "must be true or false");
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
      AddAt(key, absl::StrCat("must be a number from ", least, " to ", most));
    }
  }

  // Reads a size in bytes; `most` may be kNoLimit. If `off` is true, 0 and the text "off" are also
  // valid, and mean 0.
  template <typename Size>
  void Bytes(const char* key, std::uint64_t least, std::uint64_t most, bool off, Size* value) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    std::optional<std::uint64_t> read;
    if (const auto number = node->value_exact<std::int64_t>(); number && *number >= 0) {
      read = static_cast<std::uint64_t>(*number);
    } else if (const auto text = node->value_exact<std::string>()) {
      const absl::StatusOr<std::uint64_t> size = base::ParseSize(*text);
      if (off && *text == "off") read = 0;
      if (size.ok()) read = *size;
    }
    if (read && ((*read >= least && *read <= most) || (off && *read == 0))) {
      *value = static_cast<Size>(*read);
      return;
    }
    AddAt(key, absl::StrCat("must be a size ",
                            most == kNoLimit ? absl::StrCat("of at least ", base::FormatSize(least))
                                             : absl::StrCat("from ", base::FormatSize(least),
                                                            " to ", base::FormatSize(most)),
                            "; use a number of bytes or a string such as \"64M\"",
                            off ? ", or \"off\"" : ""));
  }

  // Reads a duration. If `off` is true, the text "off" is also valid, and means an infinite
  // duration.
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
      if (const auto duration = base::ParseDuration(*text); duration.ok()) read = *duration;
    }
    if (read && *read >= least && *read <= most) {
      *value = *read;
      return;
    }
    AddAt(key, absl::StrCat("must be a time from ", absl::FormatDuration(least), " to ",
                            absl::FormatDuration(most), "; use a string such as \"30s\"",
                            off ? ", or \"off\"" : "", "; the units are ms, s, min, h and d"));
  }

  // Returns the array, or null if the key is absent. Adds an error, with `form` as an example, and
  // returns null if the value is not an array of 1 to `most` elements.
  const toml::array* Array(const char* key, std::size_t most, const char* form) {
    const toml::node* node = Find(key);
    if (node == nullptr) return nullptr;
    const toml::array* array = node->as_array();
    if (array == nullptr || array->empty()) {
      AddAt(key, absl::StrCat("must be an array that is not empty; use e.g. ", form));
      return nullptr;
    }
    if (array->size() > most) {
      AddAt(key, absl::StrCat("has ", array->size(), " elements; the maximum is ", most));
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
    AddAt(key, absl::StrCat("must be a table; write ", title_.substr(0, title_.size() - 1), ".",
                            key, "]"));
    return std::nullopt;
  }

  // Adds an error for each unknown key. Must be called after all known keys have been requested.
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

}  // namespace nettraced

#endif  // TOOLS_NETTRACED_CONFIG_TABLE_READER_H_
