//===- Scheduler.cpp - threads of one seed, time included -----------------===//
//
// A thread is a stack. The first step onto one is makecontext's, every further switch is a _setjmp and a _longjmp,
// which make no system call.
//
//===----------------------------------------------------------------------===//
#include "test/simulation/Scheduler.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <exception>
#include <string_view>
#include <sys/mman.h>
#include <ucontext.h>

namespace ds::sim {

namespace {

constexpr size_t stackBytes = size_t(1) << 20; // touched as far as it is used

/// Stacks of fibers that have ended, for the next ones.
std::vector<void *> &freeStacks() {
  static std::vector<void *> stacks;
  return stacks;
}

void *takeStack() {
  if (!freeStacks().empty()) {
    void *stack = freeStacks().back();
    freeStacks().pop_back();
    return stack;
  }
  void *stack = ::mmap(nullptr, stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED || ::mprotect(stack, 4096, PROT_NONE) != 0) {
    std::perror("a stack cannot be mapped");
    std::abort();
  }
  return stack;
}

/// What the C++ runtime keeps for each thread: the exceptions being handled.
struct Exceptions {
  void *caught = nullptr;
  unsigned uncaught = 0;
};
Exceptions &exceptionsOfThread() noexcept { return *reinterpret_cast<Exceptions *>(abi::__cxa_get_globals()); }

} // namespace

struct Fiber {
  uint32_t number = 0, process = 0;
  std::string name;
  std::function<void()> body;
  void *stack = nullptr;
  bool started = false, done = false, timedOut = false;
  uint64_t priority = 0;
  const void *object = nullptr; // that it waits for
  const char *what = "";        // how
  Scheduler::Time until = Scheduler::never;
  std::string place; // what the runtime was doing
  ucontext_t context;
  std::jmp_buf registers;
  Exceptions exceptions;
};

Scheduler *Scheduler::current_ = nullptr;

Scheduler::Scheduler(uint64_t seed, bool inOrder, bool log) : random_(seed), inOrder_(inOrder), log_(log) {
  byPriority_ = random_.oneIn(2);
  switchOneIn_ = std::array<uint64_t, 4>{2, 4, 16, 64}[random_.below(4)];
  spuriousOneIn_ = random_.oneIn(2) ? 0 : 500;
  for (uint64_t i = 0, count = 1 + random_.below(6); i < count; ++i)
    changes_.push_back(random_.below(uint64_t(1) << (6 + random_.below(10)))); // most runs have 1,000 to 50,000 ticks
  std::sort(changes_.rbegin(), changes_.rend());
}

Scheduler::~Scheduler() {
  for (const std::unique_ptr<Fiber> &fiber : fibers_)
    if (!fiber->done) // what lies on it is lost
      freeStacks().push_back(fiber->stack);
}

Outcome Scheduler::run(const std::function<void()> &body, uint64_t tickLimit) {
  tickLimit_ = tickLimit;
  current_ = this;
  Fiber *const first = start(body);
  first->name = "main";
  const Exceptions outside = exceptionsOfThread();
  if (_setjmp(outside_) == 0) {
    running_ = first;
    switchTo(first);
  }
  exceptionsOfThread() = outside;
  current_ = nullptr;
  outcome_.time = time_;
  return outcome_;
}

Fiber *Scheduler::start(std::function<void()> body) {
  return startIn(running_ != nullptr ? process() : 0, std::move(body));
}

Fiber *Scheduler::startIn(uint32_t process, std::function<void()> body) {
  Fiber &fiber = *fibers_.emplace_back(std::make_unique<Fiber>());
  fiber.number = uint32_t(fibers_.size() - 1);
  fiber.process = process;
  fiber.name = "thread " + std::to_string(fiber.number);
  fiber.body = std::move(body);
  fiber.priority = lowest_ + random_.below(uint64_t(1) << 32);
  fiber.stack = takeStack();
  runnable_.push_back(&fiber);
  return &fiber;
}

/// The first function on a fiber's stack.
void Scheduler::enter() noexcept {
  Scheduler &self = *current_;
  Fiber &fiber = *self.running_;
  fiber.body();
  fiber.done = true;
  freeStacks().push_back(fiber.stack); // it is left before anybody takes it
  if (fiber.number == 0)
    self.leave(End::Done);
  self.wakeAll(&fiber);
  std::erase(self.runnable_, &fiber);
  self.choose();
  std::abort(); // nobody switches to a fiber that is done
}

void Scheduler::leave(End end) noexcept {
  outcome_.end = end;
  if (end != End::Done)
    outcome_.report = describeFibers();
  _longjmp(outside_, 1);
}

void Scheduler::switchTo(Fiber *next) noexcept {
  Fiber *const before = running_;
  outcome_.path = (outcome_.path ^ (next->number + 1)) * 0x100000001B3u;
  if (next->started && next == before)
    return;
  before->exceptions = exceptionsOfThread();
  exceptionsOfThread() = next->exceptions;
  running_ = next;
  alone_ = 0;
  if (_setjmp(before->registers) != 0)
    return; // it is this one's turn again
  if (next->started)
    _longjmp(next->registers, 1);
  next->started = true;
  ::getcontext(&next->context);
  next->context.uc_stack.ss_sp = next->stack;
  next->context.uc_stack.ss_size = stackBytes;
  next->context.uc_link = nullptr;
  ::makecontext(&next->context, enter, 0);
  ::setcontext(&next->context);
}

Fiber *Scheduler::pick() noexcept {
  if (inOrder_)
    return runnable_.front();
  if (!byPriority_)
    return runnable_[random_.below(runnable_.size())];
  return *std::max_element(runnable_.begin(), runnable_.end(),
                           [](const Fiber *a, const Fiber *b) { return a->priority < b->priority; });
}

void Scheduler::point() noexcept {
  if (++outcome_.ticks > tickLimit_)
    leave(End::TooManyTicks);
  time_ += std::chrono::microseconds(1);
  if (time_ >= nextTimer_)
    wakeTimers();
  ++alone_;
  if (inOrder_) {
    if (alone_ > 1000) { // it looks again and again for what another one does
      std::rotate(runnable_.begin(), runnable_.begin() + 1, runnable_.end());
      switchTo(runnable_.front());
    }
    return;
  }
  if (spuriousOneIn_ > 0 && !waiting_.empty() && random_.oneIn(spuriousOneIn_))
    if (Fiber *const fiber = waiting_[random_.below(waiting_.size())]; fiber->what == std::string_view("a condition"))
      makeRunnable(fiber);
  const bool changes = !changes_.empty() && outcome_.ticks >= changes_.back();
  if (changes)
    changes_.pop_back();
  if (byPriority_ && (changes || alone_ > 1000))
    running_->priority = --lowest_;
  if (byPriority_ || changes || random_.oneIn(switchOneIn_))
    switchTo(pick());
}

/// The running one cannot go on.
void Scheduler::choose() noexcept {
  while (runnable_.empty() && nextTimer_ != never) {
    time_ = std::max(time_, nextTimer_);
    wakeTimers();
  }
  if (runnable_.empty())
    leave(End::Hang);
  switchTo(pick());
}

bool Scheduler::block(const void *object, const char *what, Time until) noexcept {
  Fiber &self = *running_;
  self.object = object;
  self.what = what;
  self.until = until;
  self.timedOut = false;
  std::erase(runnable_, &self);
  waiting_.push_back(&self);
  nextTimer_ = std::min(nextTimer_, until);
  choose();
  return !self.timedOut;
}

void Scheduler::makeRunnable(Fiber *fiber) noexcept {
  std::erase(waiting_, fiber);
  (frozenProcesses_.contains(fiber->process) ? frozen_ : runnable_).push_back(fiber);
  if (fiber->until == nextTimer_) {
    nextTimer_ = never;
    for (const Fiber *other : waiting_)
      nextTimer_ = std::min(nextTimer_, other->until);
  }
}

uint32_t Scheduler::process() const noexcept { return running_->process; }

void Scheduler::freeze(uint32_t process) noexcept {
  frozenProcesses_.insert(process);
  std::erase_if(runnable_, [&](Fiber *fiber) {
    if (fiber->process == process)
      frozen_.push_back(fiber);
    return fiber->process == process;
  });
  if (running_->process == process)
    choose();
}

void Scheduler::thaw(uint32_t process) noexcept {
  frozenProcesses_.erase(process);
  std::erase_if(frozen_, [&](Fiber *fiber) {
    if (fiber->process == process)
      runnable_.push_back(fiber);
    return fiber->process == process;
  });
}

void Scheduler::wakeTimers() noexcept {
  for (size_t i = 0; i < waiting_.size();)
    if (Fiber *const fiber = waiting_[i]; fiber->until <= time_) {
      fiber->timedOut = true;
      makeRunnable(fiber); // takes it out of waiting_
    } else {
      ++i;
    }
}

void Scheduler::wakeOne(const void *object) noexcept {
  std::vector<Fiber *> found;
  for (Fiber *fiber : waiting_)
    if (fiber->object == object)
      found.push_back(fiber);
  if (!found.empty())
    makeRunnable(found[inOrder_ ? 0 : random_.below(found.size())]);
}

void Scheduler::wakeAll(const void *object) noexcept {
  for (size_t i = 0; i < waiting_.size();)
    if (waiting_[i]->object == object)
      makeRunnable(waiting_[i]);
    else
      ++i;
}

void Scheduler::join(Fiber *fiber) noexcept {
  while (!fiber->done)
    block(fiber, "the end of a thread");
}

void Scheduler::name(Fiber *fiber, const char *text) { fiber->name += std::string(" (") + text + ")"; }

void Scheduler::note(const char *place, const char *what) noexcept {
  running_->place = std::string(place) + " " + what;
}

void Scheduler::log(const char *format, ...) noexcept {
  if (!log_)
    return;
  std::printf("%12.6f s  tick %6llu  %-22s ", double(time_.count()) * 1e-9,
              static_cast<unsigned long long>(outcome_.ticks), running_->name.c_str());
  va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::printf("\n");
}

std::string Scheduler::describeFibers() const {
  std::string text;
  for (const std::unique_ptr<Fiber> &fiber : fibers_) {
    if (fiber->done)
      continue;
    const bool waits = std::find(waiting_.begin(), waiting_.end(), fiber.get()) != waiting_.end();
    text += "  " + fiber->name + (waits ? std::string(" waits for ") + fiber->what : std::string(" could run"));
    if (waits && fiber->until != never)
      text += " until " + std::to_string(double(fiber->until.count()) * 1e-9) + " s";
    text += fiber->place.empty() ? "\n" : ", last in " + fiber->place + "\n";
  }
  return text;
}

} // namespace ds::sim
