//===- OutOfMemory.cpp - the sentence where memory has run out ------------===//
#include "tools/ds-run/OutOfMemory.h"

#include <cstdlib>
#include <exception>
#include <execinfo.h>
#include <new>
#include <string_view>
#include <unistd.h>

namespace ds::run {
namespace {

std::terminate_handler before = nullptr;

[[noreturn]] void terminated() noexcept {
  try {
    if (const std::exception_ptr exception = std::current_exception())
      std::rethrow_exception(exception);
  } catch (const std::bad_alloc &) {
    sayOutOfMemory();
    std::_Exit(1);
  } catch (...) {
    before(); // says which exception, and aborts
  }
  std::abort();
}

} // namespace

void sayOutOfMemory() noexcept {
  constexpr std::string_view sentence = "error: there is not enough memory for the plan, its data or its weights\n";
  (void)!::write(STDERR_FILENO, sentence.data(), sentence.size());
}

void endWhenOutOfMemory() {
  before = std::set_terminate(terminated);
  void *frame = nullptr;
  (void)::backtrace(&frame, 1); // glibc loads what unwinds a thread at its first use, and aborts if memory is out then
}

} // namespace ds::run
