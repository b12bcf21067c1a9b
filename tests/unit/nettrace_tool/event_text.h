// Parts of the JSON text of an event, as `nettrace dump --json` shows it.
#ifndef TESTS_UNIT_NETTRACE_TOOL_EVENT_TEXT_H_
#define TESTS_UNIT_NETTRACE_TOOL_EVENT_TEXT_H_

#include <cstddef>
#include <string>

namespace tests {

// Returns the value of `key`, up to the comma or brace that follows it; "" if the key is missing.
inline std::string ValueOf(const std::string& json, const std::string& key) {
  const std::size_t begin = json.find("\"" + key + "\":");
  if (begin == json.npos) return "";
  const std::size_t value = begin + key.size() + 3;
  return json.substr(value, json.find_first_of(",}", value) - value);
}

// Returns the object of the payload.
inline std::string PayloadOf(const std::string& json) {
  const std::size_t begin = json.find("\"payload\":") + 10;
  return json.substr(begin, json.rfind('}') - begin);
}

}  // namespace tests

#endif  // TESTS_UNIT_NETTRACE_TOOL_EVENT_TEXT_H_
