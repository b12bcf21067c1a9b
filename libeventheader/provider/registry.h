// The registrations of this object (the program or shared object that the library is linked into).
#ifndef LIBEVENTHEADER_PROVIDER_REGISTRY_H_
#define LIBEVENTHEADER_PROVIDER_REGISTRY_H_

#include <cstdint>
#include <mutex>

#include "eventheader/provider.h"
#include "eventheader/testing/transport.h"

namespace eh::internal {

// Lists every event set that this object has registered, and has the one lock for all that is not
// writing events. A set is taken out of the registry that lists it, whichever object's code does
// that. Sets of the same provider, level and keyword share one registration with the transport.
class Registry {
 public:
  static Registry registry;

  // Each registers or unregisters as its name says; a set's status says how that went.
  void Add(EventSet* set) noexcept;
  void Remove(EventSet* set) noexcept;
  void Remove(const ProviderBase& provider) noexcept;

  // The following return 0 or the errno of a set, the newest first, that is not registered.
  int Status(const ProviderBase& provider) noexcept;
  // Registers again the sets of one provider, or of all (null), that are not registered.
  int Retry(const ProviderBase* provider) noexcept;
  int SetTransport(ProviderBase& provider, Transport* transport) noexcept;
  void Detach(const Transport* transport) noexcept;

 private:
  template <typename Function>
  void ForEach(const ProviderBase* provider, Function function) noexcept;
  void RemoveAt(EventSet** at) noexcept;
  EventSet* FindRegistered(const EventSet& like) noexcept;
  void RegisterSet(EventSet* set) noexcept;
  void UnregisterSet(EventSet* set) noexcept;
  static int RegisterTracepoint(EventSet* set) noexcept;
  static std::uint64_t* EnableWord(ProviderBase* provider) noexcept;
  static std::uint64_t TakeBit(ProviderBase* provider) noexcept;
  static void Enter(EventSet* set, Transport* transport, std::uint64_t handle,
                    std::uint64_t mask) noexcept;
  static void Forget(EventSet* set) noexcept;
  int StatusOf(const ProviderBase* provider) noexcept;
  void HandleForks() noexcept;

  std::mutex mutex_;
  EventSet* sets_ = nullptr;
  bool handles_forks_ = false;
};

}  // namespace eh::internal

#endif  // LIBEVENTHEADER_PROVIDER_REGISTRY_H_
