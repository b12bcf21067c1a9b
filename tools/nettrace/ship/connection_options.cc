#include "tools/nettrace/ship/connection_options.h"

#include <random>

#include "tools/cli/value_options.h"
#include "tools/nettrace/ship/compressor.h"

namespace tools::ship {
namespace {

Compression CompressionOf(const ConnectionOptions& options) {
  if (options.compression == "none") return Compression::kNone;
  return options.compression == "zstd" ? Compression::kZstd : Compression::kGzip;
}

}  // namespace

std::vector<CLI::Option*> AddConnectionOptions(CLI::App* command, ConnectionOptions* options,
                                               const std::string& give_up) {
  HttpSettings& http = options->http;
  const auto add_file = [&](const char* name, std::string* path, const char* help) {
    return command->add_option(name, *path, help)->type_name("FILE");
  };
  return {add_file("--header-file", &http.header_file,
                   "File of headers for each request, one a line: credentials, such as "
                   "\"Authorization: Bearer TOKEN\". It is read again before a retry"),
          add_file("--ca", &http.ca_file,
                   "Certificates of the authorities to trust, in PEM, instead of the system's"),
          add_file("--cert", &http.certificate_file, "Certificate of the client, in PEM"),
          add_file("--key", &http.key_file,
                   "Private key of --cert, in PEM (default: it is in the file of --cert)"),
          cli::AddDurationOption(
              command, "--timeout", absl::Seconds(1),
              [options](absl::Duration value) { options->http.timeout = value; },
              "Maximum time of a request (default: 30s)"),
          cli::AddDurationOption(
              command, "--give-up", absl::Seconds(1),
              [options](absl::Duration value) { options->give_up = value; },
              "Stop, and exit, if no request was accepted or refused for this time (default: " +
                  give_up + ")"),
          cli::AddDurationOption(
              command, "--retry-wait", absl::Milliseconds(1),
              [options](absl::Duration value) { options->first_wait = value; },
              "Time before the first retry; it doubles with each retry, up to 1m (default: 1s)"),
          command
              ->add_option("--compression", options->compression,
                           "Compression of requests (default: gzip)")
              ->check(CLI::IsMember({"gzip", "zstd", "none"}))};
}

HttpSettings HttpSettingsFor(const ConnectionOptions& options, const std::string& url,
                             otlp::Encoding encoding) {
  HttpSettings http = options.http;
  http.url = url;
  http.content_type =
      encoding == otlp::Encoding::kJson ? "application/json" : "application/x-protobuf";
  http.content_encoding = ContentEncoding(CompressionOf(options));
  return http;
}

DeliveryOptions DeliveryOptionsFor(const ConnectionOptions& options, const std::string& url,
                                   bool once) {
  constexpr absl::Duration kGiveUpOnce = absl::Minutes(1);
  DeliveryOptions delivery;
  delivery.name = url;
  delivery.compression = CompressionOf(options);
  delivery.fails_if_unreachable = once;
  delivery.give_up = options.give_up != absl::ZeroDuration() ? options.give_up
                     : once                                  ? kGiveUpOnce
                                                             : absl::InfiniteDuration();
  delivery.first_wait = options.first_wait;
  delivery.seed = std::random_device()();
  return delivery;
}

}  // namespace tools::ship
