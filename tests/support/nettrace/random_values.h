// Random values for the fields of an event, and the same values as JSON.
#ifndef TESTS_SUPPORT_NETTRACE_RANDOM_VALUES_H_
#define TESTS_SUPPORT_NETTRACE_RANDOM_VALUES_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nettrace/payload.h"
#include "tests/support/nettrace/random_schema.h"

namespace nettrace::testing {

std::string JsonString(std::string_view utf8);
// Returns the usual notation of a GUID, in quotes.
std::string JsonGuid(const Guid& guid);

// Builds a JSON object from a payload.
class JsonText : public PayloadVisitor {
 public:
  std::string Finish() { return std::move(text_) + "}"; }

  void OnName(std::string_view name) override;
  void OnBeginObject() override { Put("{"); }
  void OnEndObject() override { text_ += "}"; }
  void OnBeginArray() override { Put("["); }
  void OnEndArray() override { text_ += "]"; }
  void OnInt(std::int64_t value) override { Put(std::to_string(value)); }
  void OnUInt(std::uint64_t value) override { Put(std::to_string(value)); }
  void OnSingle(float value) override { Floating(value); }
  void OnDouble(double value) override { Floating(value); }
  void OnBool(bool value) override { Put(value ? "true" : "false"); }
  void OnGuid(const Guid& value) override { Put(JsonGuid(value)); }
  void OnDateTime(absl::Time utc) override;
  void OnDecimal(std::span<const std::byte> bytes) override;
  void OnUtf8(std::span<const std::byte> units) override;
  void OnUtf16(std::span<const std::byte> units) override;

 private:
  void Put(std::string_view value);
  void Floating(double value);

  std::string text_ = "{";
};

struct RandomPayload {
  std::vector<std::byte> bytes;
  std::string json;
};

// Returns random values for `fields`, encoded by a PayloadEncoder. Returns nullopt if the fields
// hold too many values, or if no random payload was small enough.
std::optional<RandomPayload> RandomValues(Randomly* random, const std::vector<Field>& fields);

}  // namespace nettrace::testing

#endif  // TESTS_SUPPORT_NETTRACE_RANDOM_VALUES_H_
