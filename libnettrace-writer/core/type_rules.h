// What a payload's types must be: by the format, and beyond it for the reference reader.
#ifndef LIBNETTRACE_WRITER_CORE_TYPE_RULES_H_
#define LIBNETTRACE_WRITER_CORE_TYPE_RULES_H_

#include <vector>

#include "absl/status/status.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

// InvalidArgument, naming the field, unless all types are whole, known and writable. `strict`: also
// refuses what the reference reader gets wrong.
absl::Status CheckFields(const std::vector<Field>& fields, bool strict);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_TYPE_RULES_H_
