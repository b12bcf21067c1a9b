// Random event schemas with values, and an encoder for them that is written from the specification
// alone. It shares no code with the library, so that the two can be compared.
#ifndef TESTS_SUPPORT_EVENTHEADER_RANDOM_EVENT_H_
#define TESTS_SUPPORT_EVENTHEADER_RANDOM_EVENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace eh::testing {

struct RandomField {
  std::string name;
  int encoding;  // 1..13
  int format;    // 0: not written
  std::optional<std::uint16_t> tag;
  std::optional<std::uint16_t> constant_length;
  bool variable_array;
  std::vector<RandomField> members;  // Members of a struct.
};

// Holds the value of a field. `units` has the units of a scalar (see UnitSize). `parts` has the
// members of a struct or the elements of an array.
struct RandomValue {
  std::vector<std::uint64_t> units;
  std::vector<RandomValue> parts;
};

struct RandomEvent {
  std::vector<RandomField> fields;
  std::vector<RandomValue> values;
  bool has_activity;
};

// Returns the size of a unit of an encoding, in bytes. The other byte order reverses the bytes of
// each unit.
inline int UnitSize(int encoding) {
  constexpr int kSizes[] = {0, 0, 1, 2, 4, 8, 1, 1, 2, 4, 1, 2, 4, 1};
  return kSizes[encoding];
}

class RandomEventMaker {
 public:
  explicit RandomEventMaker(std::uint32_t seed) : random_(seed) {}

  RandomEvent Make() {
    RandomEvent event;
    event.has_activity = Below(2) == 0;
    event.fields = Fields(static_cast<int>(Below(6)), 0);
    for (const RandomField& field : event.fields) event.values.push_back(Value(field));
    return event;
  }

 private:
  std::uint32_t Below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }

  std::vector<RandomField> Fields(int count, int depth) {
    std::vector<RandomField> fields;
    for (int i = 0; i < count; ++i) {
      RandomField field{};
      field.name = "f" + std::to_string(++names_);
      const bool is_struct = depth < 8 && Below(4) == 0;
      field.encoding = is_struct ? 1 : static_cast<int>(2 + Below(12));
      field.format = static_cast<int>(Below(19));
      if (Below(4) == 0) field.tag = static_cast<std::uint16_t>(random_());
      const std::uint32_t arity = Below(4);
      if (arity == 0) field.constant_length = static_cast<std::uint16_t>(1 + Below(3));
      field.variable_array = arity == 1;
      if (is_struct) field.members = Fields(static_cast<int>(1 + Below(3)), depth + 1);
      fields.push_back(field);
    }
    return fields;
  }

  RandomValue Value(const RandomField& field) {
    RandomValue value;
    if (!field.constant_length && !field.variable_array) return Element(field);
    const std::uint32_t length = field.constant_length ? *field.constant_length : Below(4);
    for (std::uint32_t i = 0; i < length; ++i) value.parts.push_back(Element(field));
    return value;
  }

  RandomValue Element(const RandomField& field) {
    RandomValue value;
    if (field.encoding == 1) {
      for (const RandomField& member : field.members) value.parts.push_back(Value(member));
      return value;
    }
    const int unit = UnitSize(field.encoding);
    const bool terminated = field.encoding >= 7 && field.encoding <= 9;
    std::uint32_t count = Below(20);
    if (field.encoding <= 5) count = 1;
    if (field.encoding == 6) count = 16;
    for (std::uint32_t i = 0; i < count; ++i) {
      // Mostly small numbers, so that wide units contain zero bytes.
      std::uint64_t number = Below(2) == 0 ? Below(256) : random_();
      if (unit < 8) number &= (std::uint64_t{1} << (8 * unit)) - 1;
      if (terminated && number == 0) number = 1;
      value.units.push_back(number);
    }
    return value;
  }

  std::mt19937_64 random_;
  int names_ = 0;
};

class RandomEventEncoder {
 public:
  explicit RandomEventEncoder(bool little_endian) : little_(little_endian) {}

  std::string Encode(const RandomEvent& event) {
    out_ = std::string("Event\0", 6);
    for (const RandomField& field : event.fields) Definition(field);
    const std::string metadata = std::exchange(out_, {});
    Number(little_ ? 7 : 5, 1);  // 64-bit pointers, extensions
    Number(1, 1);
    Number(0x1234, 2);
    Number(0x5678, 2);
    Number(0, 1);
    Number(5, 1);
    if (event.has_activity) {
      Number(16, 2);
      Number(0x8002, 2);
      out_ += "0123456789abcdef";
    }
    Number(metadata.size(), 2);
    Number(1, 2);
    out_ += metadata;
    for (std::size_t i = 0; i < event.fields.size(); ++i) Value(event.fields[i], event.values[i]);
    return std::exchange(out_, {});
  }

 private:
  void Number(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) {
      const int shift = 8 * (little_ ? i : size - 1 - i);
      out_.push_back(static_cast<char>(value >> shift & 0xFF));
    }
  }

  void Definition(const RandomField& field) {
    out_ += field.name + '\0';
    const bool is_struct = field.encoding == 1;
    const int format = is_struct ? static_cast<int>(field.members.size()) : field.format;
    const bool has_format = format != 0 || field.tag;
    Number(field.encoding | (field.constant_length ? 0x20 : 0) | (field.variable_array ? 0x40 : 0) |
               (has_format ? 0x80 : 0),
           1);
    if (has_format) Number(format | (field.tag ? 0x80 : 0), 1);
    if (field.tag) Number(*field.tag, 2);
    if (field.constant_length) Number(*field.constant_length, 2);
    for (const RandomField& member : field.members) Definition(member);
  }

  void Value(const RandomField& field, const RandomValue& value) {
    if (!field.constant_length && !field.variable_array) return Element(field, value);
    if (field.variable_array) Number(value.parts.size(), 2);
    for (const RandomValue& element : value.parts) Element(field, element);
  }

  void Element(const RandomField& field, const RandomValue& value) {
    if (field.encoding == 1) {
      for (std::size_t i = 0; i < field.members.size(); ++i) {
        Value(field.members[i], value.parts[i]);
      }
      return;
    }
    const int unit = UnitSize(field.encoding);
    if (field.encoding >= 10) Number(value.units.size(), 2);
    for (const std::uint64_t number : value.units) Number(number, unit);
    if (field.encoding >= 7 && field.encoding <= 9) Number(0, unit);
  }

  bool little_;
  std::string out_;
};

}  // namespace eh::testing

#endif  // TESTS_SUPPORT_EVENTHEADER_RANDOM_EVENT_H_
