// Writes a JSON object whose keys come from a file, where a key may occur several times.
#ifndef TOOLS_BASE_JSON_MEMBERS_H_
#define TOOLS_BASE_JSON_MEMBERS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tools/base/json_text.h"

namespace base {

// Collects the members of an object. Each key occurs once in the object. The value of a key that
// was added several times is an array of its values, in the order in which they were added.
class JsonMembers {
 public:
  // Adds a member. Calls `put` with a JsonWriter, to which `put` must write the member's value.
  template <typename Put>
  void Add(std::string_view key, const Put& put) {
    rapidjson::StringBuffer buffer;
    JsonWriter json(buffer);
    put(&json);
    AddJson(key, std::string_view(buffer.GetString(), buffer.GetSize()));
  }
  void AddJson(std::string_view key, std::string_view value) {
    std::string name = ValidUtf8(key);
    const auto [entry, added] = places_.try_emplace(name, members_.size());
    if (added) members_.push_back({std::move(name), {}});
    members_[entry->second].values.emplace_back(value);
  }
  void AddText(std::string_view key, std::string_view text) {
    Add(key, [text](JsonWriter* json) { PutString(json, text); });
  }

  // Writes the object.
  void Put(JsonWriter* json) const {
    json->StartObject();
    for (const Member& member : members_) {
      PutKey(json, member.key);
      const bool is_array = member.values.size() != 1;
      if (is_array) json->StartArray();
      for (const std::string& value : member.values) {
        json->RawValue(value.data(), value.size(), rapidjson::kObjectType);
      }
      if (is_array) json->EndArray();
    }
    json->EndObject();
  }

 private:
  struct Member {
    std::string key;
    std::vector<std::string> values;  // JSON
  };

  std::vector<Member> members_;
  absl::flat_hash_map<std::string, std::size_t> places_;
};

}  // namespace base

#endif  // TOOLS_BASE_JSON_MEMBERS_H_
