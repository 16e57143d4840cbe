// What a process must be like before it talks to others.
#pragma once

namespace thinwire::comm {

// A write to a connection whose other end has gone must fail, not kill the process. A handler that the program has
// installed stays.
void ignore_broken_pipes();

// Makes room for `groups` groups of `ranks` ranks beside the descriptors that are open now: raises the soft limit of
// open files when needed.
// Throws Error kUnavailable when the hard limit is too low: Gloo would crash the store's host while forming.
void reserve_descriptors(int groups, int ranks);

}  // namespace thinwire::comm
