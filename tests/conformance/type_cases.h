// One case for each type a field can have, alone and in the others, with its bytes written out by
// hand and the value that every reader has to show.
#ifndef TESTS_CONFORMANCE_TYPE_CASES_H_
#define TESTS_CONFORMANCE_TYPE_CASES_H_

#include <string>
#include <vector>

#include "nettrace/schema.h"
#include "tests/conformance/payload.h"

namespace conformance {

struct TypeCase {
  std::string name;  // of the event
  std::vector<nettrace::Field> fields;
  Payload payload;
  std::string json;  // the payload as `nettrace dump --json` has to show it
};

// TraceEvent shows these as they are.
std::vector<TypeCase> TypeCases();
// These are right by the specification, and TraceEvent shows them differently.
std::vector<TypeCase> QuirkCases();

}  // namespace conformance

#endif  // TESTS_CONFORMANCE_TYPE_CASES_H_
