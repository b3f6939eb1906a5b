#include "test/shim/Shadow.h"

#include "test/shim/Machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <vector>

extern "C" {
extern char __executable_start, _end;                     // the linker's
extern std::byte __start_ds_shared[], __stop_ds_shared[]; // all shared memory of all kernels
}

namespace shim {

Now now;

namespace {

/// One byte. Its last writer and reader, and by whom it was read besides.
struct Shadow {
  uint32_t written, read; ///< intervals; 0: never
  uint16_t writer, reader;
  bool usable;      ///< of device memory
  bool readByMany;  ///< threads, in interval `read`
  bool readByOther; ///< blocks of the launch of `read`; of device memory
};

constexpr size_t deviceBytes = size_t(256) << 20, gap = 4096;

void *reserve(size_t bytes) {
  void *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("memory of the shim cannot be mapped");
    std::abort();
  }
  return memory;
}

struct Range {
  uintptr_t begin = 0;
  size_t bytes = 0;
  bool holds(uintptr_t address) const { return address - begin < bytes; }
};
Range rangeOf(const void *begin, const void *end) {
  return {reinterpret_cast<uintptr_t>(begin),
          size_t(static_cast<const char *>(end) - static_cast<const char *>(begin))};
}

auto *const deviceMemory = static_cast<std::byte *>(reserve(deviceBytes));
auto *const deviceShadow = static_cast<Shadow *>(reserve(deviceBytes * sizeof(Shadow)));
size_t used = 0;

const Range device{reinterpret_cast<uintptr_t>(deviceMemory), deviceBytes};
const Range image = rangeOf(&__executable_start, &_end);
const Range shared = rangeOf(__start_ds_shared, __stop_ds_shared);
std::vector<Shadow> sharedShadow(shared.bytes);
size_t touchedBegin = 0, touchedEnd = shared.bytes; ///< of shared memory, since it was poisoned
Range stacks, arguments;
int64_t accessCount = 0;

[[noreturn]] void failOutside(unsigned bytes, bool writes) {
  fail("thread %u %s %u bytes that lie outside of every operand", now.thread, writes ? "writes" : "reads", bytes);
}

/// Fails where another thread touched the byte and no barrier lies between. What came before interval `since` is
/// forgotten: of a launch for device memory, of a block for shared memory.
[[gnu::always_inline]] inline void checkOrder(const Shadow &shadow, bool writes, uint32_t since, const char *memory) {
  const char *own = writes ? "writes" : "reads";
  const auto meets = [&](uint32_t interval, uint16_t thread, const char *other) __attribute__((always_inline)) {
    if (interval < since)
      return;
    if (interval < now.block)
      fail("thread %u %s %s that a thread of another block %s: a race", now.thread, own, memory, other);
    if (interval == now.interval && thread != now.thread)
      fail("thread %u %s %s that thread %u %s with no barrier between: a race", now.thread, own, memory, thread, other);
  };
  meets(shadow.written, shadow.writer, "writes");
  if (!writes)
    return;
  if (shadow.read >= since && shadow.readByOther)
    fail("thread %u writes %s that a thread of another block reads: a race", now.thread, memory);
  if (shadow.read == now.interval && shadow.readByMany)
    fail("thread %u writes %s that other threads read with no barrier between: a race", now.thread, memory);
  meets(shadow.read, shadow.reader, "reads");
}

[[gnu::always_inline]] inline void record(Shadow &shadow, bool writes, uint32_t since) {
  if (writes) {
    shadow.written = now.interval;
    shadow.writer = now.thread;
    return;
  }
  if (shadow.read < since)
    shadow.readByOther = false;
  else if (shadow.read < now.block)
    shadow.readByOther = true;
  shadow.readByMany = shadow.read == now.interval && (shadow.readByMany || shadow.reader != now.thread);
  shadow.read = now.interval;
  shadow.reader = now.thread;
}

[[gnu::always_inline]] inline void checkDevice(size_t offset, unsigned bytes, bool writes) {
  if (!deviceShadow[offset].usable || !deviceShadow[offset + bytes - 1].usable)
    failOutside(bytes, writes);
  for (unsigned i = 0; i < bytes; i += 4) {
    checkOrder(deviceShadow[offset + i], writes, now.launch, "device memory");
    record(deviceShadow[offset + i], writes, now.launch);
  }
}

[[gnu::always_inline]] inline void checkShared(size_t offset, unsigned bytes, bool writes) {
  for (unsigned i = 0; i < bytes; i += 4) {
    Shadow &shadow = sharedShadow[offset + i];
    if (!writes && shadow.written < now.block)
      fail("thread %u reads shared memory that its block has not written", now.thread);
    checkOrder(shadow, writes, now.block, "shared memory");
    record(shadow, writes, now.block);
  }
  if (writes) {
    touchedBegin = std::min(touchedBegin, offset);
    touchedEnd = std::max(touchedEnd, offset + bytes);
  }
}

/// Fails the launch where the access is wrong. Inlined for each size.
[[gnu::always_inline]] inline void check(uintptr_t address, unsigned bytes, bool writes) {
  if (!now.inKernel || stacks.holds(address))
    return;
  ++accessCount;
  const bool isShared = shared.holds(address);
  if (!isShared && !device.holds(address)) {
    if (!writes && (image.holds(address) || arguments.holds(address)))
      return; // constants, threadIdx, parameters
    failOutside(bytes, writes);
  }
  if (address % bytes != 0)
    fail("thread %u %s %u bytes at an address that is no multiple of %u", now.thread, writes ? "writes" : "reads",
         bytes, bytes);
  if (isShared)
    checkShared(address - shared.begin, bytes, writes);
  else
    checkDevice(address - device.begin, bytes, writes);
}

/// Of several elements: word by word, as far as the address allows.
void checkAll(uintptr_t address, size_t bytes, bool writes) {
  while (bytes > 0) {
    if (bytes >= 4 && address % 4 == 0) {
      check(address, 4, writes);
      address += 4;
      bytes -= 4;
    } else {
      check(address, 1, writes);
      ++address;
      --bytes;
    }
  }
}

} // namespace

void setStacks(const void *begin, size_t bytes) { stacks = {reinterpret_cast<uintptr_t>(begin), bytes}; }
void setArguments(const void *begin, size_t bytes) { arguments = {reinterpret_cast<uintptr_t>(begin), bytes}; }

void poisonShared() {
  if (touchedBegin < touchedEnd)
    std::memset(__start_ds_shared + touchedBegin, 0xff, touchedEnd - touchedBegin);
  touchedBegin = shared.bytes;
  touchedEnd = 0;
}

std::byte *allocate(size_t bytes, size_t usable) {
  const size_t begin = used;
  used += (bytes + gap + 255) / 256 * 256;
  if (used > deviceBytes) {
    std::fprintf(stderr, "the shim has no more than %zu bytes of device memory\n", deviceBytes);
    std::abort();
  }
  for (size_t i = begin; i < begin + usable; ++i)
    deviceShadow[i].usable = true;
  return deviceMemory + begin;
}

bool isUsable(const void *begin, size_t bytes) {
  const size_t offset = reinterpret_cast<uintptr_t>(begin) - device.begin;
  if (bytes == 0)
    return true;
  if (offset >= deviceBytes || bytes > deviceBytes - offset || !deviceShadow[offset + bytes - 1].usable)
    return false;
  for (size_t i = 0; i < bytes; i += gap) // what is not usable is at least as long
    if (!deviceShadow[offset + i].usable)
      return false;
  return true;
}

void releaseAll() {
  std::memset(static_cast<void *>(deviceShadow), 0, used * sizeof(Shadow));
  used = 0;
}

void checkAtomic(const void *address, unsigned bytes) {
  if (!isUsable(address, bytes))
    failOutside(bytes, true);
}

int64_t accesses() { return accessCount; }

} // namespace shim

// What the instrumented kernels call, for all sizes and for those of copies.
#define DS_ACCESS(bytes)                                                                                               \
  extern "C" void __asan_load##bytes##_noabort(uintptr_t address) { shim::check(address, bytes, false); }              \
  extern "C" void __asan_store##bytes##_noabort(uintptr_t address) { shim::check(address, bytes, true); }
DS_ACCESS(1)
DS_ACCESS(2)
DS_ACCESS(4)
DS_ACCESS(8)
DS_ACCESS(16)
#undef DS_ACCESS

extern "C" {
void __asan_loadN_noabort(uintptr_t address, size_t bytes) { shim::checkAll(address, bytes, false); }
void __asan_storeN_noabort(uintptr_t address, size_t bytes) { shim::checkAll(address, bytes, true); }
void *__asan_memcpy(void *to, const void *from, size_t bytes) {
  shim::checkAll(reinterpret_cast<uintptr_t>(from), bytes, false);
  shim::checkAll(reinterpret_cast<uintptr_t>(to), bytes, true);
  return std::memcpy(to, from, bytes);
}
void *__asan_memmove(void *to, const void *from, size_t bytes) {
  shim::checkAll(reinterpret_cast<uintptr_t>(from), bytes, false);
  shim::checkAll(reinterpret_cast<uintptr_t>(to), bytes, true);
  return std::memmove(to, from, bytes);
}
void *__asan_memset(void *to, int value, size_t bytes) {
  shim::checkAll(reinterpret_cast<uintptr_t>(to), bytes, true);
  return std::memset(to, value, bytes);
}
void __asan_handle_no_return() {}
}
