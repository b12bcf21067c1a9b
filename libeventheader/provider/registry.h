// The registrations of the event sets of this program, or of this shared object if it links the
// library statically.
#ifndef LIBEVENTHEADER_PROVIDER_REGISTRY_H_
#define LIBEVENTHEADER_PROVIDER_REGISTRY_H_

#include <cstdint>
#include <mutex>
#include <span>

#include "eventheader/provider.h"
#include "eventheader/testing/transport.h"

namespace eh::internal {

// Lists the event sets of this program or shared object, including those whose registration failed.
// A mutex guards all functions; writing an event does not lock it. Each set stores its registry, so
// that code of another shared object removes the set from the right registry. Sets of the same
// provider, level and keyword share one registration with the transport.
class Registry {
 public:
  static Registry registry;

  // Add() lists and registers a set, and stores the result in EventSet::status. Remove()
  // unregisters a set, which this registry must list, or all sets of a provider.
  void Add(EventSet* set) noexcept;
  void Remove(EventSet* set) noexcept;
  void Remove(const ProviderBase& provider) noexcept;

  // Returns 0 if all sets of the provider are registered. Otherwise, returns the errno of the
  // newest set that is not, or ENOTCONN if the provider has no sets.
  int Status(const ProviderBase& provider) noexcept;
  // Tries to register all sets of one provider, or of all providers (null), that are not registered
  // or whose handle is no longer valid. Returns 0, or the errno of the newest of these sets that is
  // still unregistered. Returns ENOTCONN for one provider without sets.
  int Retry(const ProviderBase* provider) noexcept;
  int SetTransport(ProviderBase& provider, Transport* transport) noexcept;
  void Detach(const Transport* transport) noexcept;
  // Returns the state, and writes a line that explains it to `text`, NUL-terminated and cut to the
  // size of `text`, which may be empty.
  TransportState DescribeTransport(std::span<char> text) noexcept;

 private:
  template <typename Function>
  void ForEach(const ProviderBase* provider, Function function) noexcept;
  void RemoveAt(EventSet** at) noexcept;
  EventSet* FindRegistered(const EventSet& like) noexcept;
  void RegisterSet(EventSet* set) noexcept;
  void UnregisterSet(EventSet* set) noexcept;
  int RegisterTracepoint(EventSet* set) noexcept;
  int RegisterWithDefault(const char* name, std::uint64_t* enable_word, unsigned bit,
                          Transport** transport, std::uint64_t* handle) noexcept;
  static std::uint64_t* EnableWord(ProviderBase* provider) noexcept;
  static std::uint64_t TakeBit(ProviderBase* provider) noexcept;
  static void Enter(EventSet* set, Transport* transport, std::uint64_t handle,
                    std::uint64_t mask) noexcept;
  static void Forget(EventSet* set) noexcept;
  // Returns 0 or the errno of the newest set of a provider, or of all providers (null), that is not
  // registered. Returns `without_sets` if there are no sets.
  int StatusOf(const ProviderBase* provider, int without_sets) noexcept;
  void HandleForks() noexcept;

  std::mutex mutex_;
  EventSet* sets_ = nullptr;
  bool handles_forks_ = false;
  // The result of the latest registration with the library's own transport.
  TransportState state_ = TransportState::kNotUsed;
  int state_error_ = 0;
};

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_REGISTRY_H_
