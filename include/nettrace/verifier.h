// Checks a NetTrace stream against the specification and against what TraceEvent, the library of
// PerfView and dotnet-trace, demands beyond it. docs/format/verify-rules.md explains each rule.
#ifndef NETTRACE_VERIFIER_H_
#define NETTRACE_VERIFIER_H_

#include "nettrace/need_cxx20.h"

#ifdef NETTRACE_CXX20

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nettrace/source.h"

namespace nettrace {

enum class Severity : std::uint8_t {
  kError,   // against the specification
  kHazard,  // right by the specification, and yet TraceEvent fails or shows something else
};

struct Rule {
  const char* name;
  Severity severity;
  const char* section;  // of the specification, or "TraceEvent"
  const char* summary;  // what must hold
};

// All rules there are, in the order of the documentation.
std::span<const Rule> VerifyRules();

struct Finding {
  const Rule* rule = nullptr;
  std::uint64_t offset = 0;  // in the stream
  std::string explanation;
};

struct VerifyOptions {
  // So many findings are kept for each rule; more are only counted.
  std::size_t max_findings_per_rule = 20;
  // The tables may hold so many bytes, by the estimate of ReaderOptions. Verification ends with a
  // finding beyond it, where a Reader with the same limit gives up, too.
  std::size_t max_table_bytes = std::size_t{1} << 30;
};

struct VerifyReport {
  std::uint32_t version = 0;
  std::vector<Finding> findings;  // in the order they were met
  std::uint64_t errors = 0;       // all, those not kept included
  std::uint64_t hazards = 0;
  std::uint64_t events = 0;
};

// Reads `source` to its end. V4 and V5 streams are only checked to be readable. Errors are those of
// Reader::Open, for streams that cannot be verified at all.
absl::StatusOr<VerifyReport> Verify(std::unique_ptr<Source> source,
                                    const VerifyOptions& options = {});

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_VERIFIER_H_
