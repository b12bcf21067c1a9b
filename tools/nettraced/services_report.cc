#include "tools/nettraced/services_report.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace nettraced {
namespace {

control::ServiceStatus ToServiceStatus(const collector::RingReport::Service& from) {
  control::ServiceStatus service;
  service.pid = static_cast<std::uint64_t>(from.pid);
  service.uid = from.uid;
  service.name = from.process.name;
  service.executable = from.process.executable;
  service.cgroup = from.process.cgroup;
  service.started = from.process.started.value_or(absl::InfinitePast());
  service.connected = from.connected;
  service.transport = from.inline_reason.empty() ? "memfd" : "inline";
  service.inline_reason = from.inline_reason;
  service.ring_bytes = from.ring_bytes;
  service.events = from.events;
  service.lost = from.lost.full + from.lost.nested + from.lost.without_writer;
  const auto add = [&service](const char* reason, std::uint64_t events) {
    if (events != 0) service.losses.push_back({reason, events});
  };
  add(kLostRingFull, from.lost.full);
  add(kLostSignalHandler, from.lost.nested);
  add(kLostTooManyThreads, from.lost.without_writer);
  service.corrupt = from.corrupt;
  for (const collector::RingReport::Tracepoint& tracepoint : from.tracepoints) {
    service.tracepoints.push_back({tracepoint.name, tracepoint.sessions});
  }
  service.has_more_tracepoints = from.has_more_tracepoints;
  return service;
}

control::RefusedServices ToRefusedServices(const collector::RingRefusalEntry& from) {
  const collector::RingRefusalText& text = collector::TextOf(from.reason);
  control::RefusedServices refused;
  if (from.uid != static_cast<uid_t>(-1)) refused.uid = from.uid;
  refused.pid = static_cast<std::uint64_t>(from.pid);
  refused.reason = std::string(text.name);
  refused.message = std::string(text.message);
  if (!from.detail.empty()) absl::StrAppend(&refused.message, ": ", from.detail);
  refused.remedy = std::string(text.remedy);
  refused.count = from.count;
  refused.last = from.last;
  return refused;
}

control::ServicesTotals ToTotals(const collector::RingReport& report) {
  const collector::RingReport::Totals& from = report.totals;
  control::ServicesTotals totals;
  for (const collector::RingReport::Service& service : report.services) {
    totals.ring_bytes += service.ring_bytes;
  }
  totals.events = from.events;
  totals.lost = {{kLostRingFull, from.lost.full},
                 {kLostSignalHandler, from.lost.nested},
                 {kLostTooManyThreads, from.lost.without_writer}};
  totals.corrupt = from.corrupt;
  for (std::size_t i = 0; i < from.refused.size(); ++i) {
    const auto reason = static_cast<collector::RingRefusal>(i);
    totals.refused.emplace_back(collector::TextOf(reason).name, from.refused[i]);
  }
  return totals;
}

}  // namespace

control::ServicesStatus ToServicesStatus(const collector::RingReport& report) {
  control::ServicesStatus services;
  services.socket = report.socket;
  services.totals = ToTotals(report);
  for (const collector::RingReport::Service& service : report.services) {
    services.services.push_back(ToServiceStatus(service));
  }
  for (const collector::RingRefusalEntry& refusal : report.refusals) {
    services.refused.push_back(ToRefusedServices(refusal));
  }
  return services;
}

}  // namespace nettraced
