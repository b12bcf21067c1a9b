// A control socket without a daemon, for tests of `nettrace ctl`:
//
//   control_server PATH LOOK_GROUP CONTROL_GROUP
//
// Members of LOOK_GROUP may view sessions, and those of CONTROL_GROUP may also change them. The
// program prints "ready" and serves until its standard input ends. It logs the changes and the
// users that made them to standard error. A tail has one event, a sequence point, and at its end
// the end of a stream.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/time/clock.h"
#include "tests/support/collector/fake_service.h"
#include "tests/support/nettrace/writer_to_string.h"
#include "tools/control/server.h"

namespace {

constexpr char kHostile[] = "\x1b[2J\xe2\x80\xae\xff\n\"x\\";

void PrepareTail(FakeService* service) {
  nettrace::testing::WriterToString stream;
  nettrace::Writer& writer = *stream.writer;
  nettrace::ThreadInfo cpu;
  cpu.name = "CPU 0";
  const auto thread = *writer.AddThread(cpu);
  nettrace::EventMetadata metadata;
  metadata.provider = "Provider";
  metadata.name = "Event";
  nettrace::EventRow row;
  row.metadata_id = *writer.AddMetadata(metadata);
  row.capture_thread = row.thread = thread;
  row.timestamp = 1;
  if (!writer.WriteEvent(row, {}).ok() || !writer.WriteSequencePoint(2).ok() ||
      !writer.Flush().ok()) {
    return;
  }
  service->tail_body = *stream.written;
  if (!writer.Finish().ok()) return;
  service->tail_end = stream.written->substr(service->tail_body.size());
}

// Sets the values that tables and metrics must show.
void PrepareSessions(FakeService* service) {
  service->Update("web", [](control::SessionStatus* web) {
    web->state = control::SessionStatus::State::kSuspended;
    web->events = 1'234'567;
    web->events_per_second = 12'345;
    web->lost = 5000;
    web->dropped = 1000;
    web->bytes = 3 << 20;
    web->files = 14;
    web->error = std::string(200, 'e') + kHostile;
    web->error_time = web->started;
    for (std::uint32_t cpu = 0; cpu < 40; ++cpu) web->losses[{cpu, kHostile}] = cpu + 1;
    web->losses[{7, ""}] = 1000;
    web->unmatched = {"Shop*:5"};
    web->left_out = {std::string("sched:") + kHostile + ": its format cannot be read"};
    web->cpu_rate = 997;
    web->off_cpu = true;
    web->stacks = {std::string(kHostile) + ": user,max=30"};
    web->warnings = {std::string(kHostile) + " has no names"};
    web->current_file = "/var/lib/nettraced/web/web-1.nettrace.partial";
  });
  service->Update("box", [](control::SessionStatus* box) { box->memory_bytes = 64 << 20; });
}

void PrepareServices(FakeService* service) {
  control::ServicesStatus services;
  services.socket = "/run/nettraced/events";
  control::ServiceStatus& shop = services.services.emplace_back();
  shop.pid = 4242;
  shop.uid = 1000;
  shop.name = std::string("shop") + kHostile;
  shop.executable = "/usr/bin/shop";
  shop.cgroup = "/system.slice/shop.service";
  shop.started = shop.connected = absl::Now() - absl::Minutes(3);
  shop.transport = "memfd";
  shop.ring_bytes = 1 << 20;
  shop.events = 1'234'567;
  shop.lost = 5000;
  shop.losses = {{"ringFull", 4999}, {"signalHandler", 1}};
  shop.tracepoints = {{"Shop_L4K1", {"box", "web"}}, {"Shop_L5K1", {}}};
  control::ServiceStatus& cart = services.services.emplace_back();
  cart.pid = 4343;
  cart.name = "cart";
  cart.started = cart.connected = absl::Now() - absl::Minutes(1);
  cart.transport = "inline";
  cart.inline_reason = std::string("the service cannot share memory: ") + kHostile;
  cart.tracepoints = {{"Cart_L4K1", {}}, {"Shop_L4K1", {}}};
  control::RefusedServices& refused = services.refused.emplace_back();
  refused.uid = 1001;
  refused.pid = 77;
  refused.reason = "badRegion";
  refused.message = std::string("the service sent no valid region: ") + kHostile;
  refused.remedy = "use a libeventheader of the version of the collector";
  refused.count = 12;
  refused.last = absl::Now() - absl::Seconds(5);
  services.totals.ring_bytes = 1 << 20;
  services.totals.events = 1'234'567;
  services.totals.lost = {{"ringFull", 4999}, {"signalHandler", 1}};
  services.totals.refused = {{"badRegion", 12}};
  service->SetServices(std::move(services));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  FakeService service;
  PrepareTail(&service);
  PrepareSessions(&service);
  PrepareServices(&service);
  control::ControlServerOptions options;
  options.path = argv[1];
  options.look_group = argv[2];
  options.control_group = argv[3];
  options.version = "1.2.3";
  options.on_change = [](const std::string& change) {
    std::fprintf(stderr, "%s\n", change.c_str());
  };
  const auto server = control::ControlServer::Start(&service, options);
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().ToString().c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  return 0;
}
