// Prints EventHeader events as libeventheader's JSON. Each input line is an event, from its header
// on, in hexadecimal digits; each output line is its JSON.
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <span>
#include <string>
#include <vector>

#include "eventheader/decoder.h"
#include "eventheader/json_formatter.h"

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i + 1 < line.size(); i += 2) {
      bytes.push_back(static_cast<std::byte>(std::stoi(line.substr(i, 2), nullptr, 16)));
    }
    eh::EventView event;
    if (const auto error = eh::ParseEvent(bytes, &event); error != eh::ParseError::kNone) {
      std::fprintf(stderr, "%s\n", eh::ParseErrorText(error));
      return 1;
    }
    std::string json;
    eh::AppendEventJson(event, "", &json);
    std::puts(json.c_str());
  }
  return 0;
}
