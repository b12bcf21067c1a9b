// `nettrace ship`: sends the events of files to a receiver of OpenTelemetry's logs.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "tools/base/json_text.h"
#include "tools/base/status_macros.h"
#include "tools/base/text.h"
#include "tools/cli/exit_codes.h"
#include "tools/cli/signals.h"
#include "tools/cli/value_options.h"
#include "tools/nettrace/command/open_input.h"
#include "tools/nettrace/commands.h"
#include "tools/nettrace/ship/connection_options.h"
#include "tools/nettrace/ship/delivery.h"
#include "tools/nettrace/ship/destination.h"
#include "tools/nettrace/ship/http_client.h"
#include "tools/nettrace/ship/position.h"
#include "tools/nettrace/ship/shipper.h"
#include "tools/nettrace/ship/spool.h"

namespace tools {
namespace {

constexpr char kShip[] = "ship";

struct ShipArguments {
  std::vector<std::string> paths;
  std::string url;
  std::string spans_url;  // "" means that it is derived from `url`
  std::string state;
  std::string encoding = "protobuf";
  ship::ConnectionOptions connection;
  ship::ShipOptions options;
  bool json = false;
};

void PrintJson(const ship::ShipCounts& counts, const ship::DeliveryCounts& delivered,
               const ship::DeliveryCounts& spans, bool is_complete) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  base::PutNumber(&json, "files", counts.files);
  base::PutNumber(&json, "events", counts.events);
  base::PutNumber(&json, "lost", counts.lost);
  base::PutNumber(&json, "accepted", delivered.accepted);
  base::PutNumber(&json, "rejected", delivered.rejected);
  base::PutNumber(&json, "refused", delivered.refused);
  base::PutNumber(&json, "spans", spans.accepted);
  base::PutNumber(&json, "refusedSpans", spans.rejected + spans.refused);
  base::PutNumber(&json, "incompleteSpans", counts.incomplete_spans);
  base::PutNumber(&json, "requests", delivered.requests + spans.requests);
  base::PutNumber(&json, "retries", delivered.retries + spans.retries);
  base::PutNumber(&json, "bytes", delivered.bytes + spans.bytes);
  base::PutNumber(&json, "lostFiles", counts.lost_files);
  base::PutNumber(&json, "missingSections", counts.missing_sections);
  base::PutNumber(&json, "missingEvents", counts.missing_events);
  base::PutNumber(&json, "damagedFiles", counts.damaged_files);
  base::PutNumber(&json, "unreadable", counts.unreadable);
  json.Key("complete");
  json.Bool(is_complete);
  json.EndObject();
  base::PrintJsonLine(buffer);
}

void PrintText(const ship::ShipCounts& counts, const ship::DeliveryCounts& delivered,
               const ship::DeliveryCounts& spans) {
  const std::string with_spans =
      spans.requests == 0 ? "" : " and " + base::Counted(spans.accepted, "span");
  absl::FPrintF(
      stderr,
      "nettrace ship: sent %s%s of %s in %s; %d rejected individually, %d in refused requests\n",
      base::Counted(delivered.accepted, "record"), with_spans, base::Counted(counts.files, "file"),
      base::Counted(delivered.requests + spans.requests, "request"),
      delivered.rejected + spans.rejected, delivered.refused + spans.refused);
}

// Prints the error and returns `exit_code`.
int Fail(const absl::Status& status, int exit_code) {
  absl::FPrintF(stderr, "nettrace ship: %s\n", std::string(status.message()));
  return exit_code;
}

// Completes the URLs of logs and of spans with the paths to which requests are sent.
absl::Status CompleteUrls(ShipArguments* arguments) {
  ASSIGN_OR_RETURN(arguments->url, ship::LogsUrl(arguments->url));
  if (arguments->options.span_providers.empty()) return absl::OkStatus();
  if (!arguments->spans_url.empty()) {
    ASSIGN_OR_RETURN(arguments->spans_url,
                     ship::ReceiverUrl(arguments->spans_url, otlp::Signal::kSpans));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(arguments->spans_url, ship::TracesUrl(arguments->url));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ship::HttpClient>> ConnectTo(const ShipArguments& arguments,
                                                            const std::string& url) {
  return ship::HttpClient::Create(
      ship::HttpSettingsFor(arguments.connection, url, arguments.options.encoding));
}

int Ship(ShipArguments arguments) {
  if (const absl::Status status = CompleteUrls(&arguments); !status.ok()) {
    return Fail(status, cli::kExitUsage);
  }
  if (arguments.encoding == "json") arguments.options.encoding = otlp::Encoding::kJson;
  if (const absl::Status status = cli::CatchSignals(); !status.ok()) {
    return Fail(status, cli::kExitFailed);
  }
  const auto fail_to_connect = [](const absl::Status& status) {
    return Fail(status, absl::IsUnavailable(status) ? cli::kExitFailed : cli::kExitUnreadable);
  };
  const auto client = ConnectTo(arguments, arguments.url);
  if (!client.ok()) return fail_to_connect(client.status());
  std::unique_ptr<ship::HttpClient> spans_client;
  if (!arguments.options.span_providers.empty()) {
    auto connected = ConnectTo(arguments, arguments.spans_url);
    if (!connected.ok()) return fail_to_connect(connected.status());
    spans_client = *std::move(connected);
  }
  absl::StatusOr<ship::PositionFile> file = ship::PositionFile::Open(arguments.state);
  if (!file.ok()) return Fail(file.status(), cli::kExitFailed);
  ship::Spool spool(arguments.paths);
  const auto delivery_to = [&](const std::string& url) {
    return ship::DeliveryOptionsFor(arguments.connection, url, arguments.options.once);
  };
  ship::Shipper shipper(arguments.options, {delivery_to(arguments.url), client->get()},
                        {delivery_to(arguments.spans_url), spans_client.get()}, &*file, &spool);
  const absl::Status status = shipper.Run();
  if (!status.ok()) Fail(status, cli::kExitFailed);
  const ship::ShipCounts& counts = shipper.counts();
  const ship::DeliveryCounts& delivered = shipper.delivered();
  const ship::DeliveryCounts& spans = shipper.delivered_spans();
  // Without --once, a signal is the usual end, and does not make the work incomplete.
  const bool is_early = !status.ok() || (arguments.options.once && cli::IsStopRequested());
  const bool is_complete = !is_early && delivered.rejected == 0 && delivered.refused == 0 &&
                           spans.rejected == 0 && spans.refused == 0 && counts.lost_files == 0 &&
                           counts.missing_sections == 0 && counts.damaged_files == 0 &&
                           counts.unreadable == 0;
  PrintText(counts, delivered, spans);
  if (arguments.json) PrintJson(counts, delivered, spans, is_complete);
  if (status.ok() && counts.files == 0 && counts.unreadable != 0) return cli::kExitUnreadable;
  const bool is_done = arguments.options.once ? is_complete : status.ok();
  return FinishOutput(kShip, is_done ? cli::kExitOk : cli::kExitFailed);
}

void AddSpanOptions(CLI::App* command, ShipArguments* arguments) {
  command
      ->add_option("--spans", arguments->options.span_providers,
                   "Also send the activities of this provider as spans, to /v1/traces; may be "
                   "repeated")
      ->type_name("PROVIDER")
      ->allow_extra_args(false);
  command
      ->add_option("--spans-to", arguments->spans_url,
                   "URL of the receiver of spans (default: --to, with /v1/traces)")
      ->type_name("URL")
      ->needs("--spans");
}

}  // namespace

void AddShip(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<ShipArguments>();
  CLI::App* command =
      app.add_subcommand(kShip, "Send the events of files to an OpenTelemetry collector");
  command
      ->add_option("--to", arguments->url, "URL of the receiver; without a path, /v1/logs is added")
      ->required()
      ->type_name("URL");
  command
      ->add_option("--state", arguments->state,
                   "File that stores what was sent; each nettrace ship needs its own file")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("path", arguments->paths,
                   "Directories of sessions, whose complete .nettrace files are sent, or files")
      ->required();
  command->add_flag("--once", arguments->options.once,
                    "Send the files that there are, and end; without it, wait for new files");
  AddSpanOptions(command, arguments.get());
  ship::AddConnectionOptions(command, &arguments->connection, "never; 1m with --once");
  command->add_option("--encoding", arguments->encoding, "Encoding of requests (default: protobuf)")
      ->check(CLI::IsMember({"protobuf", "json"}));
  cli::AddSizeOption(
      command, "--request-size", std::uint64_t{64} << 20,
      [arguments](std::uint64_t value) { arguments->options.limits.bytes = value; },
      "Maximum size of a request before compression (default: 1000000)");
  command
      ->add_option("--metrics", arguments->options.metrics,
                   "Write metrics in OpenMetrics to this file, at most once a second")
      ->type_name("FILE");
  command->add_flag("--json", arguments->json,
                    "At the end, print the counts of files, events and requests as JSON");
  command->footer(
      "Each event becomes a log record of OTLP/HTTP, as with export --to otlp. A request is "
      "repeated until the receiver answers it, so an event arrives at least once. It may arrive "
      "twice if an answer was lost; both records then have the same attribute log.record.uid. "
      "Requests that the receiver refuses are counted and not repeated.\n"
      "nettrace-ship.service runs this command for the files of nettraced; "
      "/usr/share/doc/nettraced/guides/opentelemetry-collector.md is a guide.\n\n"
      "Exit code: 0 everything was sent, or without --once a signal ended the run; 1 no "
      "answer came within --give-up, or the state cannot be saved, or with --once: some records "
      "were not accepted, a file was damaged or deleted before it was sent, or a signal ended the "
      "run; 2 no file can be read, or wrong usage.\n\n"
      "Examples:\n"
      "  nettrace ship --once --to http://localhost:4318 --state s.json trace.nettrace\n"
      "  nettrace ship --to https://collector.example:4318 --header-file headers \\\n"
      "      --state shop.json /var/lib/nettraced/shop\n");
  command->callback([arguments, exit_code] {
    *exit_code = WithinMemory(
        kShip, arguments->paths, [&] { return Ship(*arguments); }, cli::kExitFailed);
  });
}

}  // namespace tools
