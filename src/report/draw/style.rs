//! The look of all pictures. Rules begin with `.dyelog`, so that a page which holds a picture keeps its own look.
//!
//! Colours: those of categories are of Okabe and Ito (2008), which people with any of the common colour blindnesses tell apart;
//! utilisation is a single scale from light to dark (`YlOrBr` of Brewer), with the number printed beside.

/// Style sheet.
pub(super) const STYLE: &str = r#".dyelog{color:#1f2933}
.dyelog text{font-family:system-ui,"Segoe UI",Helvetica,Arial,"DejaVu Sans",sans-serif;fill:currentColor;unicode-bidi:isolate;white-space:pre}
.dyelog .t{font-size:12px}.dyelog .n{font-size:12px;font-weight:700}.dyelog .s{font-size:11px}
.dyelog .m{text-anchor:middle}.dyelog .e{text-anchor:end}
.dyelog .dim{fill:#52606d}
.dyelog .ground{fill:#fff}
.dyelog path,.dyelog line{fill:none}
.dyelog .task{fill:#fff;stroke:#2f4858;stroke-width:1.3}
.dyelog .ref .task,.dyelog .ref .name{fill:#f6ecd8}
.dyelog .rule{stroke:#2f4858;stroke-width:1}
.dyelog .name{fill:#e3ecf5;stroke:#2f4858;stroke-width:1.3}
.dyelog .proc{fill:#eef2ee;stroke:#486048;stroke-width:1.2}
.dyelog .act{fill:#f7f9fb;stroke:#52708a;stroke-width:1}
.dyelog .op{fill:#fff;stroke:#52708a;stroke-width:1.2}
.dyelog .arc{stroke:#33414e;stroke-width:1.25}
.dyelog .flow{stroke:#52708a;stroke-width:1.1}
.dyelog .forward{stroke-dasharray:6 4}
.dyelog .use{stroke:#7b9a7b;stroke-width:1;stroke-dasharray:2 3}
.dyelog .full{fill:#33414e;stroke:#33414e;stroke-width:1}
.dyelog .open{stroke:#33414e;stroke-width:1.5}
.dyelog .small{fill:#52708a}
.dyelog .focus .task{stroke-width:2.6}
.dyelog .lane{fill:#f4f6f8}.dyelog .lane.odd{fill:#e9edf1}
.dyelog .thread{stroke:#8796a5;stroke-opacity:.55;stroke-width:8;stroke-linecap:round}
.dyelog .thread.fork{stroke-dasharray:10 11}.dyelog .thread.join{stroke-dasharray:1 12}
.dyelog .line{stroke:#1f2933;stroke-width:1}
.dyelog .dot{stroke:#1f2933;stroke-width:1.3}.dyelog .ring{fill:none;stroke:#1f2933;stroke-width:1}
.dyelog .plain{fill:#fff}
.dyelog .lifeline{stroke:#7b8794;stroke-width:1;stroke-dasharray:3 3}
.dyelog .work{fill:#cfdeec;stroke:#2f4858;stroke-width:1}.dyelog .later{fill:#fff;stroke:#2f4858;stroke-width:1}
.dyelog .reply{stroke-dasharray:3 3}.dyelog .unknown{stroke:#b42318;stroke-dasharray:2 4}
.dyelog .halo{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}
.dyelog .k0{fill:#f5c45e}.dyelog .k1{fill:#8fd0f5}.dyelog .k2{fill:#6fcfae}.dyelog .k3{fill:#f4ec7a}.dyelog .k4{fill:#8fb4ea}.dyelog .k5{fill:#f2a07b}.dyelog .k6{fill:#e3b0cf}
.dyelog .u1{fill:#eef3f8}.dyelog .u2{fill:#d3e2f0}.dyelog .u3{fill:#b0cce4}.dyelog .u4{fill:#fde9a9}.dyelog .u5{fill:#f59d3d}.dyelog .u6{fill:#9b2226}
.dyelog .band path{stroke-width:9;stroke-opacity:.38;stroke-linejoin:round;stroke-linecap:round}
.dyelog .b0{stroke:#0072b2}.dyelog .b1{stroke:#e69f00}.dyelog .b2{stroke:#009e73}.dyelog .b3{stroke:#cc79a7}.dyelog .b4{stroke:#d55e00}.dyelog .b5{stroke:#56b4e9}
.dyelog.template text{paint-order:stroke;stroke:#fff;stroke-width:3.5px;stroke-linejoin:round}
.dyelog .frame{fill:none;stroke:#7b8794;stroke-width:1;stroke-dasharray:5 4}
.dyelog .on1{fill:#1f2933}.dyelog .on6{fill:#fff}
@media (prefers-color-scheme:dark){
.dyelog{color:#e4e7eb}
.dyelog .dim{fill:#a8b3bf}
.dyelog .ground{fill:#14191e}
.dyelog.template text{stroke:#14191e}
.dyelog .task{fill:#1b2229;stroke:#9fb6c9}
.dyelog .ref .task,.dyelog .ref .name{fill:#3a2f1a}
.dyelog .rule{stroke:#9fb6c9}
.dyelog .name{fill:#24384b;stroke:#9fb6c9}
.dyelog .proc{fill:#1f2a1f;stroke:#8fae8f}
.dyelog .act{fill:#202a33;stroke:#86a5be}
.dyelog .op{fill:#14191e;stroke:#86a5be}
.dyelog .arc{stroke:#cbd5df}
.dyelog .flow{stroke:#86a5be}
.dyelog .use{stroke:#6f8f6f}
.dyelog .lane{fill:#1b2229}.dyelog .lane.odd{fill:#232c35}
.dyelog .thread{stroke:#8c9bab}
.dyelog .line{stroke:#e4e7eb}
.dyelog .dot,.dyelog .ring{stroke:#e4e7eb}
.dyelog .plain{fill:#14191e}
.dyelog .lifeline{stroke:#8c9bab}
.dyelog .work{fill:#2f4a63;stroke:#9fb6c9}.dyelog .later{fill:#14191e;stroke:#9fb6c9}
.dyelog .unknown{stroke:#ff8a80}
.dyelog .halo{stroke:#14191e}
.dyelog .k0{fill:#f5c45e}.dyelog .k1{fill:#8fd0f5}.dyelog .k2{fill:#6fcfae}.dyelog .k3{fill:#f4ec7a}.dyelog .k4{fill:#8fb4ea}.dyelog .k5{fill:#f2a07b}.dyelog .k6{fill:#e3b0cf}
.dyelog .full{fill:#cbd5df;stroke:#cbd5df}
.dyelog .open{stroke:#cbd5df}
.dyelog .small{fill:#86a5be}
.dyelog .u1{fill:#eef3f8}.dyelog .u2{fill:#d3e2f0}.dyelog .u3{fill:#b0cce4}.dyelog .u4{fill:#fde9a9}.dyelog .u5{fill:#f59d3d}.dyelog .u6{fill:#9b2226}
}
"#;
