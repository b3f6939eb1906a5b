//===- QueueStanding.cpp - where a queue stands, and whom it waits for ----===//
#include "runtime/device/QueueStanding.h"

#include "runtime/device/Event.h"
#include "runtime/device/Rendezvous.h"
#include "runtime/device/Task.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace ds::runtime {

const Event *QueueStanding::awaitedEvent() const noexcept {
  const Event *event = event_;
  return state_ == State::Waits && event != nullptr && event->value() < value_ ? event : nullptr;
}

std::string QueueStanding::sentence() const {
  const ListedCommand *command = command_;
  const std::string queue = "queue " + name_;
  if (command == nullptr)
    return queue + " has been given nothing to do";
  if (state_ == State::Inside)
    return queue + " has not come out of " + command->what;
  if (state_ == State::Ended)
    return queue + " has not gone on after " + command->what;
  return queue + (awaitedEvent() != nullptr ? " waits for an event that lets it begin " : " has not begun ") +
         command->what;
}

void QueueStanding::addAwaited(std::vector<const QueueStanding *> &queues) const {
  const ListedCommand *command = command_;
  if (command == nullptr)
    return;
  if (const Event *event = awaitedEvent())
    queues.insert(queues.end(), event->raisers().begin(), event->raisers().end());
  else if (state_ == State::Inside && command->rendezvous != nullptr)
    command->rendezvous->addMissing(queues);
}

const QueueStanding *holderOf(std::vector<const QueueStanding *> queues) {
  for (size_t next = 0; next < queues.size(); ++next) { // breadth first, each once
    std::vector<const QueueStanding *> awaited;
    if (queues[next] != nullptr)
      queues[next]->addAwaited(awaited);
    if (awaited.empty())
      return queues[next];
    for (const QueueStanding *queue : awaited)
      if (std::ranges::find(queues, queue) == queues.end())
        queues.push_back(queue);
  }
  return nullptr;
}

} // namespace ds::runtime
