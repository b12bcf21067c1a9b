// Checks the types of fields before they are written.
#ifndef LIBNETTRACE_WRITER_CORE_CHECK_FIELDS_H_
#define LIBNETTRACE_WRITER_CORE_CHECK_FIELDS_H_

#include <vector>

#include "absl/status/status.h"
#include "nettrace/schema.h"

namespace nettrace::internal {

// Returns InvalidArgument if a type is incomplete, unknown or not writable, if types are nested
// deeper than kMaxTypeDepth, or if there are more than kMaxFields fields. For a wrong type, the
// message names the field. With `traceevent_compatible`, also refuses types that TraceEvent
// misreads.
absl::Status CheckFields(const std::vector<Field>& fields, bool traceevent_compatible);

}  // namespace nettrace::internal

#endif  // LIBNETTRACE_WRITER_CORE_CHECK_FIELDS_H_
