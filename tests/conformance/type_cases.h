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

// Shown by the reference reader as they are.
std::vector<TypeCase> TypeCases();
// Right by the specification, and shown by the reference reader in a way of its own.
std::vector<TypeCase> QuirkCases();

}  // namespace conformance

#endif  // TESTS_CONFORMANCE_TYPE_CASES_H_
