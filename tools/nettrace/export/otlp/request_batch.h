// Collects encoded records of OTLP into requests of bounded size: log records, or spans.
#ifndef TOOLS_NETTRACE_EXPORT_OTLP_REQUEST_BATCH_H_
#define TOOLS_NETTRACE_EXPORT_OTLP_REQUEST_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "tools/nettrace/export/otlp/log_encoder.h"

namespace tools::otlp {

// Maximum size of a request. A record that is larger than `bytes` becomes a request without other
// records.
struct RequestLimits {
  // Maximum bytes of a request. The file receivers of the OpenTelemetry collector cut lines at 1
  // MiB.
  std::size_t bytes = 1'000'000;
  std::size_t records = 8192;
};

// Passes each full request to a function. The records of a request are grouped by resource and
// scope, and are in the order of the calls of Add within each group. Memory holds one request. Not
// thread-safe.
class RequestBatch {
 public:
  // Receives an encoded request, which is valid during the call.
  using Send = std::function<absl::Status(const RequestBatch& batch, std::string_view request)>;

  // `encoder` must outlive this object.
  RequestBatch(const LogEncoder* encoder, Signal signal, const RequestLimits& limits, Send send);

  // A resource, and its place in the current request. Add uses the place instead of searching for
  // the resource.
  struct Resource {
    std::string encoded = {};
    std::uint64_t request = 0;  // number of the request for which `group` is valid
    std::size_t group = 0;
  };
  // Adds a record to the current request. If the request would become too large, first passes it to
  // `send` and begins a new request. `events` is the number of events of the file that the record
  // represents.
  absl::Status Add(std::string_view record, Resource* resource, const std::string& scope,
                   std::uint64_t events);
  // Passes the current request to the function `send`, if it has records.
  absl::Status Flush();

  // Leaves out the first `count` records, because an earlier run has sent them. Must be called
  // before the first record. Later records are the same as without this call.
  void SkipRecords(std::uint64_t count) { skipped_ = count; }
  // Returns the number of records in the current request.
  std::size_t records() const { return order_.size(); }
  // Returns the number of events of the file that `count` records of the current request represent.
  // `first` is the number of the first of these records, from 0 on.
  std::uint64_t EventsIn(std::size_t first, std::size_t count) const;
  // Appends a request that consists of up to `count` records of the current request, from the
  // record numbered `first` on, in the order in which they were added. May be called by Send.
  void AppendPart(std::size_t first, std::size_t count, std::string* out) const;

 private:
  // Place of a record in the current request.
  struct Place {
    std::uint32_t group = 0;
    std::uint32_t scope = 0;
    std::size_t begin = 0;  // offset in ResourceGroup::Scope::records
    std::size_t size = 0;
    std::uint64_t events = 0;  // number of events that the record represents
  };

  // Returns the group of the resource in the current request.
  ResourceGroup& GroupOf(Resource* resource);

  const LogEncoder* const encoder_;
  const Signal signal_;
  const RequestLimits limits_;
  const Send send_;
  std::uint64_t skipped_ = 0;  // number of further records to leave out
  // The following members are about the current request.
  std::uint64_t request_ = 1;  // number of the current request, from 1
  std::vector<ResourceGroup> groups_;
  absl::flat_hash_map<std::string, std::size_t> places_;  // indices in groups_, by resource
  std::vector<Place> order_;  // places of its records, in the order in which they were added
  std::size_t bytes_ = LogEncoder::kFrameSize;
  std::string encoded_;
};

}  // namespace tools::otlp

#endif  // TOOLS_NETTRACE_EXPORT_OTLP_REQUEST_BATCH_H_
