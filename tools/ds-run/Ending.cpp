//===- Ending.cpp - how a run is asked to end, and is made to -------------===//
#include "tools/ds-run/Ending.h"

#include "runtime/flight/FlightRecorder.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <signal.h>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>

namespace ds::run {
namespace {

std::atomic<bool> stopRequested = false; // by any of the signals
std::atomic<bool> endRequested = false;  // by SIGINT or SIGTERM, of which the second counts
std::atomic<runtime::FlightRecorder *> recorderToAsk = nullptr;

/// Only what a signal handler may call. The process ends by the signal, so that who started it sees which.
void endNow(int signal, std::string_view sentence) {
  (void)!::write(STDERR_FILENO, sentence.data(), sentence.size());
  (void)std::signal(signal, SIG_DFL);
  (void)::raise(signal); // delivered when the handler returns
}

void endWhileLoading(int signal) { endNow(signal, "error: ended by a signal before the run began\n"); }

void askToEnd(int signal) {
  stopRequested = true;
  if (signal != SIGUSR1 && endRequested.exchange(true))
    endNow(signal, "error: ended at once by a second signal; what was being written is lost\n");
}

void setHandlers(void (*handler)(int)) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1})
    (void)std::signal(signal, handler);
}

} // namespace

void endOnSignals() { setHandlers(endWhileLoading); }

const std::atomic<bool> &askToEndOnSignals() {
  setHandlers(askToEnd);
  return stopRequested;
}

void recordOnSignal(runtime::FlightRecorder &recorder) {
  recorderToAsk = &recorder;
  (void)std::signal(SIGUSR2, [](int) { recorderToAsk.load()->ask(); });
}

void endWithin(std::chrono::seconds limit, const std::string &error) {
  std::thread([limit, error] {
    std::this_thread::sleep_for(limit);
    std::fprintf(stderr, "error: %s; the process did not end within %lld s of that and was ended\n", error.c_str(),
                 static_cast<long long>(limit.count()));
    std::_Exit(1);
  }).detach();
}

} // namespace ds::run
