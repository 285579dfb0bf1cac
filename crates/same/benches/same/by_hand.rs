//! Part B of the 2005 paper written by hand: how long a message takes where nothing is a template, and nothing is made of the interactions but
//! their number.

const NONE: u32 = u32::MAX;

#[derive(Default)]
struct Node {
    is_live: bool,
    is_free: bool,
    task: u32,
    parent: u32,
    children: Vec<u32>,
}

/// The trees.
#[derive(Default)]
pub struct ByHand {
    nodes: Vec<Node>,
    free: Vec<u32>,
    live: Vec<u32>,
    path: Vec<u32>,
    open: Vec<u32>,
    /// Interactions by kind: synchronous, asynchronous, forwarded.
    pub counts: [u64; 3],
}

impl ByHand {
    fn node(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    fn live(&mut self, task: u32) -> u32 {
        if self.live.len() <= task as usize {
            self.live.resize(task as usize + 1, NONE);
        }
        self.live[task as usize]
    }

    fn begin(&mut self, task: u32, parent: u32) -> u32 {
        let old = self.live(task);
        let node = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() as u32 - 1
        });
        let own = self.node(node);
        (own.is_live, own.is_free, own.task, own.parent) = (true, false, task, parent);
        self.live[task as usize] = node;
        if parent != NONE {
            self.node(parent).children.push(node);
        }
        if old != NONE {
            self.node(old).is_live = false;
            self.open.push(old);
        }
        node
    }

    fn cut(&mut self, child: u32) {
        let parent = std::mem::replace(&mut self.node(child).parent, NONE);
        if parent != NONE {
            let children = &mut self.node(parent).children;
            let place = children.iter().rposition(|other| *other == child).expect("it hangs there");
            children.remove(place);
        }
    }

    /// Takes a message from a task to another one.
    pub fn message(&mut self, from: u32, to: u32) {
        let sender = match self.live(from) {
            NONE => self.begin(from, NONE),
            live => live,
        };
        let client = self.live(to);
        self.path.clear();
        let mut node = sender;
        while node != NONE && node != client {
            self.path.push(node);
            node = self.node(node).parent;
        }
        if node == NONE || client == NONE || sender == client {
            self.begin(to, sender);
            self.open.push(sender);
        } else {
            self.counts[if self.path.len() == 1 { 0 } else { 2 }] += 1;
            for place in (0..self.path.len()).rev() {
                let node = self.path[place];
                let own = self.node(node);
                own.is_live = false;
                let task = own.task as usize;
                if self.live[task] == node {
                    self.live[task] = NONE;
                }
                self.cut(node);
                self.open.push(node);
            }
            let own = self.node(client);
            if own.parent == NONE && own.children.is_empty() {
                own.is_live = false;
                self.live[to as usize] = NONE;
                self.open.push(client);
            }
        }
        while let Some(node) = self.open.pop() {
            self.clean(node);
        }
    }

    /// Step 3 for a node that has changed.
    fn clean(&mut self, node: u32) {
        loop {
            let Node { is_live, is_free, parent, ref children, .. } = self.nodes[node as usize];
            if parent == NONE && children.len() > usize::from(is_live) {
                let child = children[0];
                self.counts[1] += 1;
                self.cut(child);
                self.open.push(child);
            } else if !is_live && parent != NONE && children.is_empty() {
                self.counts[1] += 1;
                self.cut(node);
                self.open.push(parent);
            } else {
                if !is_live && !is_free && parent == NONE {
                    self.node(node).is_free = true;
                    self.free.push(node);
                }
                return;
            }
        }
    }
}
