//! Counting the requests of one service by route, status and time. A route's counters are found when the router is made, so
//! that a request costs a few atomic additions and no look-up.

use crate::metrics::histogram::Histogram;
use axum::response::Response;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

/// The statuses that a service answers with. Others are counted together.
const STATUSES: [(u16, &str); 17] = [
    (200, "200"),
    (201, "201"),
    (204, "204"),
    (400, "400"),
    (401, "401"),
    (402, "402"),
    (403, "403"),
    (404, "404"),
    (405, "405"),
    (409, "409"),
    (410, "410"),
    (413, "413"),
    (415, "415"),
    (422, "422"),
    (429, "429"),
    (500, "500"),
    (503, "503"),
];

/// The requests of one route and method.
#[derive(Debug)]
pub(crate) struct RouteCount {
    pub(crate) method: &'static str,
    /// The template of the path, such as `/v1/payments/{id}`.
    pub(crate) route: String,
    statuses: [AtomicU64; STATUSES.len()],
    other: AtomicU64,
    pub(crate) times: Histogram,
}

impl RouteCount {
    fn new(method: &'static str, route: &str) -> Self {
        Self {
            method,
            route: route.to_owned(),
            statuses: Default::default(),
            other: AtomicU64::new(0),
            times: Histogram::default(),
        }
    }

    fn answered(&self, status: u16, time: Duration) {
        let known = STATUSES.iter().position(|(known, _)| *known == status);
        known.map_or(&self.other, |i| &self.statuses[i]).fetch_add(1, Ordering::Relaxed);
        self.times.add(time);
    }

    /// How often each status was answered, where it was at all.
    pub(crate) fn by_status(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let known = STATUSES.iter().zip(&self.statuses).map(|((_, status), count)| (*status, count));
        known.chain([("other", &self.other)]).filter_map(|(status, count)| {
            let count = count.load(Ordering::Relaxed);
            (count > 0).then_some((status, count))
        })
    }
}

/// The requests of one service.
#[derive(Debug)]
pub(crate) struct Counting {
    routes: Mutex<Vec<Arc<RouteCount>>>,
    /// What no route answered: refused at the door or the gate, or nothing is there.
    no_route: Arc<RouteCount>,
    being_answered: AtomicI64,
    abandoned: AtomicU64,
}

/// A mark on a response: the route that made it.
#[derive(Debug, Clone)]
pub(crate) struct OfRoute(pub(crate) Arc<RouteCount>);

impl Default for Counting {
    fn default() -> Self {
        Self {
            routes: Mutex::default(),
            no_route: Arc::new(RouteCount::new("any", "none")),
            being_answered: AtomicI64::new(0),
            abandoned: AtomicU64::new(0),
        }
    }
}

impl Counting {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<RouteCount>>> {
        // Nothing panics while it holds the lock, so the list is whole.
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The counters of a route, made with the router.
    pub(crate) fn route(&self, method: &'static str, route: &str) -> Arc<RouteCount> {
        let count = Arc::new(RouteCount::new(method, route));
        self.lock().push(count.clone());
        count
    }

    /// Counts a request for as long as it is being answered.
    pub(crate) fn request(&self) -> Request<'_> {
        self.being_answered.fetch_add(1, Ordering::Relaxed);
        Request { counting: self, answered: false }
    }

    /// All routes, and what no route answered.
    pub(crate) fn routes(&self) -> Vec<Arc<RouteCount>> {
        let mut routes = self.lock().clone();
        routes.push(self.no_route.clone());
        routes
    }

    /// Requests that are being answered right now.
    pub(crate) fn being_answered(&self) -> u64 {
        u64::try_from(self.being_answered.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Requests whose client went away, or lost its place, before the answer.
    pub(crate) fn abandoned(&self) -> u64 {
        self.abandoned.load(Ordering::Relaxed)
    }
}

/// A request that is being answered.
pub(crate) struct Request<'a> {
    counting: &'a Counting,
    answered: bool,
}

impl Request<'_> {
    /// Counts the answer under the route that made it.
    pub(crate) fn answered(mut self, response: &Response, time: Duration) {
        let of = response.extensions().get::<OfRoute>().map_or(&self.counting.no_route, |OfRoute(count)| count);
        of.answered(response.status().as_u16(), time);
        self.answered = true;
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.counting.being_answered.fetch_sub(1, Ordering::Relaxed);
        if !self.answered {
            self.counting.abandoned.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn answer(status: u16, route: Option<&Arc<RouteCount>>) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = status.try_into().unwrap();
        if let Some(route) = route {
            response.extensions_mut().insert(OfRoute(route.clone()));
        }
        response
    }

    #[test]
    fn an_answer_is_counted_once_under_its_route_and_a_lost_one_as_lost() {
        let counting = Counting::default();
        let route = counting.route("GET", "/here/{id}");
        for (status, of) in [(200, Some(&route)), (200, Some(&route)), (418, Some(&route)), (404, None)] {
            counting.request().answered(&answer(status, of), Duration::from_millis(1));
        }
        let lost = counting.request();
        assert_eq!(counting.being_answered(), 1);
        drop(lost);
        assert_eq!((counting.being_answered(), counting.abandoned()), (0, 1));
        assert_eq!(route.by_status().collect::<Vec<_>>(), [("200", 2), ("other", 1)]);
        assert_eq!(route.times.read().count, 3);
        let none = counting.routes().pop().unwrap();
        assert_eq!((none.route.as_str(), none.by_status().collect::<Vec<_>>()), ("none", vec![("404", 1)]));
    }
}
