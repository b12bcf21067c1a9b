// The matrix of encodings, formats and arities. Each row has the bytes of the specification,
// written by hand, and the JSON text of its two values. Every way of writing an event must make
// these bytes, and the decoder must read these values from them.
//
// Bytes are "definition | payload" of the only field "f", in hexadecimal: what follows its name in
// the metadata, and its data. The scalar is the row's first value; the arrays have both values.
#ifndef TESTS_UNIT_EVENTHEADER_GOLDEN_GOLDEN_H_
#define TESTS_UNIT_EVENTHEADER_GOLDEN_GOLDEN_H_

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eventheader/eh.h"
#include "eventheader/eventheader_c.h"
#include "eventheader/testing/recording_transport.h"

namespace eh::testing {

inline constinit Provider golden_provider("Test_Golden");

// The bytes 0 to 15.
inline constexpr std::array<std::uint8_t, 16> kZeroTo15 = {0, 1, 2,  3,  4,  5,  6,  7,
                                                           8, 9, 10, 11, 12, 13, 14, 15};

using CBuilder = std::unique_ptr<eh_builder, decltype(&eh_builder_destroy)>;

// The texts of a row.
struct Golden {
  // Bytes of the field as a scalar, as an array of constant length, and of variable length.
  std::string_view scalar;
  std::string_view constant;
  std::string_view variable;
  // JSON of the two values.
  std::string_view first;
  std::string_view second;
};

// There is one test for each encoding. Except for structs, the test ends with ExpectWholeMatrixOf,
// which checks that there was a row for every format of the encoding.
class GoldenBytes : public ::testing::Test {
 protected:
  GoldenBytes() { golden_provider.SetTransport(&transport_); }
  ~GoldenBytes() override { golden_provider.SetTransport(nullptr); }

  // Writes the event in every way: static, dynamic, raw and both C forms. T cannot be a struct,
  // whose bytes also have the definitions of its members: test_golden_counted.cc tests structs with
  // the functions below.
  template <Format kFormat, typename T>
  void Row(const T& first, const T& second, const Golden& golden) {
    const Encoding encoding = internal::Coder<T>::kEncoding;
    Begin(encoding, kFormat);
    Typed<kFormat>(first, Bytes(golden.scalar));
    Typed<kFormat>(std::array<T, 2>{first, second}, Bytes(golden.constant));
    Typed<kFormat>(std::vector<T>{first, second}, Bytes(golden.variable));
    Untyped(encoding, kFormat, golden);
  }

  // Checks that there were rows for all formats that the specification has for `encoding`, and no
  // others.
  void ExpectWholeMatrixOf(Encoding encoding) const;

  // Expects these bytes of a static and of a dynamic event with the field.
  template <Format kFormat, typename T>
  void Typed(const T& value, const std::string& bytes) {
    static constexpr Event<golden_provider, "E", Traits{}, typename FieldOf<T, kFormat>::Type>
        event;
    EXPECT_EQ(event.Write(value), WriteResult::kWritten);
    EXPECT_EQ(Take(), bytes) << "static event";
    dynamic_.Reset("E");
    dynamic_.AddField("f", value, kIsOwnFormat<T, kFormat> ? Format::kDefault : kFormat);
    EXPECT_EQ(dynamic_.Write(set_), WriteResult::kWritten);
    EXPECT_EQ(Take(), bytes) << "dynamic event";
  }
  void UntypedStruct(Arity arity, std::string_view golden, std::string_view json);
  // Returns the event "E" with one field "f", whose definition and payload are in `golden`.
  static std::string Bytes(std::string_view golden);

 private:
  template <typename T, Format kFormat>
  static constexpr bool kIsOwnFormat = internal::Coder<T>::kFormat == kFormat;
  template <typename T, Format kFormat>
  struct FieldOf {
    using Type = Field<"f", T, As<kFormat>>;
  };
  template <typename T, Format kFormat>
  requires kIsOwnFormat<T, kFormat>
  struct FieldOf<T, kFormat> {
    using Type = Field<"f", T>;
  };

  void Begin(Encoding encoding, Format format);
  void Untyped(Encoding encoding, Format format, const Golden& golden);
  void UntypedOne(Encoding encoding, Format format, Arity arity, std::string_view golden,
                  std::string_view json);
  void Prepared(std::string_view golden);
  void ExpectJson(std::string_view golden, std::string_view json);
  std::string Take();
  const eh_event_set* c_set() const { return reinterpret_cast<const eh_event_set*>(&set_); }

  RecordingTransport transport_;
  EventSet set_{golden_provider, Level::kInformation, 0};
  DynamicEvent dynamic_;
  CBuilder builder_{eh_builder_create(), &eh_builder_destroy};
  std::set<std::pair<Encoding, Format>> rows_;
};

}  // namespace eh::testing

#endif  // TESTS_UNIT_EVENTHEADER_GOLDEN_GOLDEN_H_
