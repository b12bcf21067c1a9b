// `nettrace ship`: sends the events of files to a receiver of OpenTelemetry's logs.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
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
  std::string state;
  std::string encoding = "protobuf";
  std::string compression = "gzip";
  ship::HttpSettings http;
  ship::ShipOptions options;
  absl::Duration give_up = absl::ZeroDuration();  // 0: the default
  absl::Duration first_wait = absl::Seconds(1);
  bool json = false;
};

void PrintJson(const ship::ShipCounts& counts, const ship::DeliveryCounts& delivered,
               bool is_complete) {
  rapidjson::StringBuffer buffer;
  base::JsonWriter json(buffer);
  json.StartObject();
  base::PutNumber(&json, "files", counts.files);
  base::PutNumber(&json, "events", counts.events);
  base::PutNumber(&json, "lost", counts.lost);
  base::PutNumber(&json, "accepted", delivered.accepted);
  base::PutNumber(&json, "rejected", delivered.rejected);
  base::PutNumber(&json, "refused", delivered.refused);
  base::PutNumber(&json, "requests", delivered.requests);
  base::PutNumber(&json, "retries", delivered.retries);
  base::PutNumber(&json, "bytes", delivered.bytes);
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

void PrintText(const ship::ShipCounts& counts, const ship::DeliveryCounts& delivered) {
  absl::FPrintF(stderr, "nettrace ship: sent %s of %s in %s; %d rejected, %d refused\n",
                base::Counted(delivered.accepted, "record"), base::Counted(counts.files, "file"),
                base::Counted(delivered.requests, "request"), delivered.rejected,
                delivered.refused);
}

ship::Compression CompressionOf(const ShipArguments& arguments) {
  if (arguments.compression == "none") return ship::Compression::kNone;
  return arguments.compression == "zstd" ? ship::Compression::kZstd : ship::Compression::kGzip;
}

ship::DeliveryOptions DeliveryOptionsOf(const ShipArguments& arguments) {
  constexpr absl::Duration kGiveUpOnce = absl::Minutes(1);
  ship::DeliveryOptions options;
  options.name = arguments.http.url;
  options.compression = CompressionOf(arguments);
  options.fails_if_unreachable = arguments.options.once;
  options.give_up = arguments.give_up != absl::ZeroDuration() ? arguments.give_up
                    : arguments.options.once                  ? kGiveUpOnce
                                                              : absl::InfiniteDuration();
  options.first_wait = arguments.first_wait;
  options.seed = std::random_device()();
  return options;
}

// Prints an error without the rest of the command line, and returns `exit_code`.
int Fail(const absl::Status& status, int exit_code) {
  absl::FPrintF(stderr, "nettrace ship: %s\n", std::string(status.message()));
  return exit_code;
}

int Ship(ShipArguments arguments) {
  absl::StatusOr<std::string> url = ship::LogsUrl(arguments.http.url);
  if (!url.ok()) return Fail(url.status(), cli::kExitUsage);
  arguments.http.url = *std::move(url);
  const bool is_json = arguments.encoding == "json";
  arguments.options.encoding = is_json ? otlp::Encoding::kJson : otlp::Encoding::kProtobuf;
  arguments.http.content_type = is_json ? "application/json" : "application/x-protobuf";
  arguments.http.content_encoding = ship::ContentEncoding(CompressionOf(arguments));
  if (const absl::Status status = cli::CatchSignals(); !status.ok()) {
    return Fail(status, cli::kExitFailed);
  }
  absl::StatusOr<std::unique_ptr<ship::HttpClient>> client =
      ship::HttpClient::Create(arguments.http);
  if (!client.ok()) {
    return Fail(client.status(),
                absl::IsUnavailable(client.status()) ? cli::kExitFailed : cli::kExitUnreadable);
  }
  absl::StatusOr<ship::PositionFile> file = ship::PositionFile::Open(arguments.state);
  if (!file.ok()) return Fail(file.status(), cli::kExitFailed);
  ship::Spool spool(arguments.paths);
  ship::Shipper shipper(arguments.options, DeliveryOptionsOf(arguments), &*file, &spool,
                        client->get());
  const absl::Status status = shipper.Run();
  if (!status.ok()) Fail(status, cli::kExitFailed);
  const ship::ShipCounts& counts = shipper.counts();
  const ship::DeliveryCounts& delivered = shipper.delivered();
  // A service that is stopped by a signal has done its work.
  const bool is_early = !status.ok() || (arguments.options.once && cli::IsStopRequested());
  const bool is_complete = !is_early && delivered.rejected == 0 && delivered.refused == 0 &&
                           counts.lost_files == 0 && counts.missing_sections == 0 &&
                           counts.damaged_files == 0 && counts.unreadable == 0;
  PrintText(counts, delivered);
  if (arguments.json) PrintJson(counts, delivered, is_complete);
  if (status.ok() && counts.files == 0 && counts.unreadable != 0) return cli::kExitUnreadable;
  const bool is_done = arguments.options.once ? is_complete : status.ok();
  return FinishOutput(kShip, is_done ? cli::kExitOk : cli::kExitFailed);
}

// Adds the options of the connection.
void AddConnectionOptions(CLI::App* command, const std::shared_ptr<ShipArguments>& arguments) {
  ship::HttpSettings& http = arguments->http;
  command
      ->add_option("--header-file", http.header_file,
                   "File of headers for each request, one a line: credentials, such as "
                   "\"Authorization: Bearer TOKEN\". It is read again before a retry")
      ->type_name("FILE");
  command
      ->add_option("--ca", http.ca_file,
                   "Certificates of the authorities to trust, in PEM, instead of the system's")
      ->type_name("FILE");
  command->add_option("--cert", http.certificate_file, "Certificate of the client, in PEM")
      ->type_name("FILE");
  command
      ->add_option("--key", http.key_file,
                   "Private key of --cert, in PEM (default: it is in the file of --cert)")
      ->type_name("FILE");
  cli::AddDurationOption(
      command, "--timeout", absl::Seconds(1),
      [arguments](absl::Duration value) { arguments->http.timeout = value; },
      "Maximum time of a request (default: 30s)");
  cli::AddDurationOption(
      command, "--give-up", absl::Seconds(1),
      [arguments](absl::Duration value) { arguments->give_up = value; },
      "End after this time without an answer that accepts or refuses a request (default: never; "
      "1m with --once)");
  cli::AddDurationOption(
      command, "--retry-wait", absl::Milliseconds(1),
      [arguments](absl::Duration value) { arguments->first_wait = value; },
      "Time before the first retry; it doubles with each retry, up to 1m (default: 1s)");
}

}  // namespace

void AddShip(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<ShipArguments>();
  CLI::App* command =
      app.add_subcommand(kShip, "Send the events of files to an OpenTelemetry collector");
  command
      ->add_option("--to", arguments->http.url,
                   "URL of the receiver; without a path, /v1/logs is added")
      ->required()
      ->type_name("URL");
  command
      ->add_option("--state", arguments->state,
                   "File that remembers what was sent; each ship needs a different one")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("path", arguments->paths,
                   "Directories of sessions, whose complete .nettrace files are sent, or files")
      ->required();
  command->add_flag("--once", arguments->options.once,
                    "Send the files that there are, and end; without it, wait for new files");
  AddConnectionOptions(command, arguments);
  command->add_option("--encoding", arguments->encoding, "Form of requests (default: protobuf)")
      ->check(CLI::IsMember({"protobuf", "json"}));
  command->add_option("--compression", arguments->compression, "Of requests (default: gzip)")
      ->check(CLI::IsMember({"gzip", "zstd", "none"}));
  cli::AddSizeOption(
      command, "--request-size", std::uint64_t{64} << 20,
      [arguments](std::uint64_t value) { arguments->options.limits.bytes = value; },
      "Maximum size of a request before compression (default: 1000000)");
  command->add_flag("--json", arguments->json,
                    "At the end, print the counts as JSON, to standard output");
  command->footer(
      "Each event becomes a log record of OTLP/HTTP, as with export --to otlp. A request is "
      "repeated until the receiver answers it, so an event arrives at least once. It may arrive "
      "twice if an answer was lost; both records then have the same attribute log.record.uid. "
      "Requests that the receiver refuses are counted and not repeated.\n"
      "nettrace-ship.service runs this command for the files of nettraced; "
      "/usr/share/doc/nettraced/guides/opentelemetry-collector.md is a guide.\n\n"
      "Exit code: 0 everything was sent, or without --once a signal ended it; 1 the receiver was "
      "given up, or the state cannot be saved, or with --once: some records were not accepted, a "
      "file was damaged or deleted before it was sent, or a signal ended it; 2 no file can be "
      "read, or wrong usage.\n\n"
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
