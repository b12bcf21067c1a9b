// Sends the events of files to an OTLP receiver, and continues where an earlier run ended.
//
// The position in a file is the count of records at its beginning that need not be sent again. It
// is saved after each request that the receiver has answered. The next run, also after a crash,
// reads the file from its beginning and leaves out these records. A record is sent twice if the
// answer to its request was lost. Both copies have the same uid, because a file yields the same
// records and uids whenever it is read.
#ifndef TOOLS_NETTRACE_SHIP_SHIPPER_H_
#define TOOLS_NETTRACE_SHIP_SHIPPER_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/nettrace/export/otlp/log_encoder.h"
#include "tools/nettrace/export/otlp/log_requests.h"
#include "tools/nettrace/ship/delivery.h"
#include "tools/nettrace/ship/http_client.h"
#include "tools/nettrace/ship/position.h"
#include "tools/nettrace/ship/spool.h"
#include "tools/trace/account_summary.h"
#include "tools/trace/payload_json.h"

namespace tools::ship {

struct ShipOptions {
  otlp::Encoding encoding = otlp::Encoding::kProtobuf;
  otlp::RequestLimits limits;
  bool once = false;  // whether to end when no file is left, instead of waiting for new files
  std::vector<std::string> span_providers;  // providers whose activities are also sent as spans
  std::string metrics;                      // file of metrics; "" means none
};

// Counts of a run.
struct ShipCounts {
  std::uint64_t files = 0;  // sent completely
  std::uint64_t events = 0;
  std::uint64_t lost = 0;              // events that the recording lost, which files report
  std::uint64_t lost_files = 0;        // deleted before they were sent
  std::uint64_t damaged_files = 0;     // sent as far as they are readable
  std::uint64_t unreadable = 0;        // files and directories that could not be opened
  std::uint64_t missing_sections = 0;  // sections whose numbers were in no file
  std::uint64_t missing_events = 0;    // events of missing sections, as later files state
  std::uint64_t incomplete_spans = 0;  // activities whose start or stop is not in the same file
};

// Not thread-safe.
class Shipper {
 public:
  // The receiver of the logs, or that of the spans. `client` must outlive the Shipper.
  struct Destination {
    DeliveryOptions options;
    HttpClient* client = nullptr;
  };
  // `file` and `spool` must outlive this object. `spans` has no client if no spans are sent.
  Shipper(const ShipOptions& options, const Destination& logs, const Destination& spans,
          PositionFile* file, Spool* spool);

  // Sends files until the process is asked to end, or, with ShipOptions::once, until all are sent.
  // Prints messages. Fails with Unavailable if a Delivery stops retrying, and with another error if
  // the position cannot be saved.
  absl::Status Run();

  const ShipCounts& counts() const { return counts_; }
  const DeliveryCounts& delivered() const { return logs_.counts(); }
  const DeliveryCounts& delivered_spans() const { return spans_.counts(); }

 private:
  struct FileResult;
  class ShipExporter;

  // Sends all files that the spool lists and that were not sent completely. Returns whether at
  // least one is now sent completely.
  absl::StatusOr<bool> ShipListed();
  // Adds new files to the position, and removes deleted files from it. Counts the deleted files
  // that were not sent completely. Saves the position if it has changed.
  absl::Status Compare(const Spool::Listing& listing);
  void ReportProblems(const Spool::Listing& listing);
  absl::Status ShipFile(const SpoolFile& file);
  absl::Status FinishFile(const FileResult& result);
  // Sends a record for each file that was deleted before it was sent.
  absl::Status ShipDeleted();
  // The number of sections that were in no file that was sent, and the number of events, including
  // lost ones, in these sections.
  struct Missing {
    std::uint64_t sections = 0;
    std::uint64_t events = 0;
  };
  // Returns what is missing between the last file of series_ that was sent and the file that begins
  // with `section`.
  Missing FindMissing(const trace::AccountSummary::Section& section) const;
  // Adds a record of what is missing before the file to the records of the file.
  absl::Status AddMissing(const ShipExporter& file, absl::Time time,
                          otlp::LogRequests* requests) const;
  void CountMissing(const Missing& missing);
  Delivery::Actions ActionsFor(const Destination& destination, bool are_spans);
  // Makes `requests` also send spans if ShipOptions::span_providers is not empty.
  void MakeSpans(otlp::LogRequests* requests);
  absl::Status OnDelivered(std::size_t records, std::uint64_t events);
  absl::Status OnSpansDelivered(std::size_t spans);
  // Writes the file of metrics. Without `now`, does nothing if the file was written in the last
  // second.
  void PutMetrics(bool now);
  void ReportOnce(const std::string& message);

  const ShipOptions options_;
  PositionFile* const file_;
  Spool* const spool_;
  Delivery logs_;
  Delivery spans_;
  // The parts of delivered() and delivered_spans() that the totals of the position contain.
  DeliveryCounts saved_;
  DeliveryCounts saved_spans_;
  absl::Duration last_metrics_ = -absl::InfiniteDuration();  // monotonic time of the last writing
  ShipCounts counts_;
  // The file that is being sent, and its exporter. Null while records about deleted files are sent.
  ShippedFile* current_ = nullptr;
  const ShipExporter* exporter_ = nullptr;
  std::string series_;              // series of the file that is being sent; "" if it has none
  std::set<std::string> reported_;  // messages about files, which are printed once
};

}  // namespace tools::ship

#endif  // TOOLS_NETTRACE_SHIP_SHIPPER_H_
