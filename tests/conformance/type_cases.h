// Cases of each type that a field can have, alone and within other types. Each case has the bytes,
// written by hand, and the value that every reader must show.
#ifndef TESTS_CONFORMANCE_TYPE_CASES_H_
#define TESTS_CONFORMANCE_TYPE_CASES_H_

#include <string>
#include <vector>

#include "nettrace/schema.h"
#include "tests/conformance/payload.h"

namespace conformance {

struct TypeCase {
  std::string name;  // Name of the event.
  std::vector<nettrace::Field> fields;
  Payload payload;
  std::string json;  // The payload that `nettrace dump --json` must show.
};

// Cases that TraceEvent shows correctly.
std::vector<TypeCase> TypeCases();
// Cases that are right by the specification, but that TraceEvent shows differently.
std::vector<TypeCase> QuirkCases();

}  // namespace conformance

#endif  // TESTS_CONFORMANCE_TYPE_CASES_H_
