// Checks a NetTrace stream against the specification, and against the additional requirements of
// TraceEvent, the library of PerfView and dotnet-trace. docs/format/verify-rules.md explains each
// rule.
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
  kError,   // violates the specification
  kHazard,  // valid, but TraceEvent misreads it, or TraceEvent or this library cannot read it
};

struct Rule {
  const char* name;
  Severity severity;
  // Origin of the rule: a section of the specification, "TraceEvent" or "libnettrace".
  const char* section;
  const char* summary;  // the condition that must hold
};

// Returns all rules, in the order of docs/format/verify-rules.md.
std::span<const Rule> VerifyRules();

struct Finding {
  const Rule* rule = nullptr;
  std::uint64_t offset = 0;  // bytes from the start of the stream
  std::string explanation;
};

struct VerifyOptions {
  // Maximum number of findings of each rule that the report contains. Further findings are only
  // counted.
  std::size_t max_findings_per_rule = 20;
  // Maximum estimated size of the tables in bytes, as in ReaderOptions. If they would grow larger,
  // Verify() stops and reports a finding. The verifier also counts the EventIds that it remembers,
  // so a Reader with the same limit reads at least as far.
  std::size_t max_table_bytes = std::size_t{1} << 30;
};

struct VerifyReport {
  std::uint32_t version = 0;
  std::vector<Finding> findings;  // in the order of discovery
  std::uint64_t errors = 0;       // total, including those beyond max_findings_per_rule
  std::uint64_t hazards = 0;
  std::uint64_t events = 0;
};

// Reads `source` to its end, or to the first block that cannot be read or exceeds a limit. For V4
// and V5 streams, checks only that they are readable. Returns an error of Reader::Open() if the
// stream cannot be verified at all. For V6 streams, also returns the error if `source` fails before
// the EndOfStream block; but DataLoss, the error for cut input, becomes a finding.
absl::StatusOr<VerifyReport> Verify(std::unique_ptr<Source> source,
                                    const VerifyOptions& options = {});

}  // namespace nettrace

#endif  // NETTRACE_CXX20
#endif  // NETTRACE_VERIFIER_H_
