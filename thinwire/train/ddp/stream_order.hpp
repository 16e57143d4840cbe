// Orders the communication thread's work after the gradients that it reads and the trainer's work after the exchange,
// on devices that run ahead of the host. On CPU nothing is recorded (c10::Event throws there): two files, chosen at run
// time.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

namespace thinwire::train {

class StreamOrder {
 public:
  virtual ~StreamOrder() = default;

  // Trainer's thread, before a bucket is handed over: what follows on the communication stream comes after the
  // gradients.
  virtual void gradients_recorded() = 0;
  // Communication thread, at the start of every job: its own stream is current and waits for the gradients.
  virtual void enter() = 0;
  // Communication thread, after the exchange; then the trainer's thread: its stream waits for it.
  virtual void exchange_recorded() = 0;
  virtual void wait_for_exchange() = 0;
  // A tensor that both streams use must not be freed for one of them while the other still needs it.
  virtual void share(const at::Tensor& tensor) = 0;
};

std::unique_ptr<StreamOrder> make_stream_order(const at::Device& device);

// The two implementations.
std::unique_ptr<StreamOrder> make_no_stream();
std::unique_ptr<StreamOrder> make_device_stream(const at::Device& device);

}  // namespace thinwire::train
