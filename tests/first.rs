use ptc::{Engine, Host};
#[test]
fn first() {
    let host = Host::new().dispatch(|call| { let _ = call.reply(call.args()); });
    let engine = Engine::new(r#"{"tools":[{"name":"echo","description":"d","input_schema":{"type":"object","properties":{"a":{}}}}]}"#, host).unwrap();
    let out = engine.execute("import sys\nfrom hermes_tools import echo\nprint(1)\nprint(echo(a=[1,2]))\nprint('err', file=sys.stderr)\nimport os\nprint(os.getcwd(), sys.path)", "").unwrap();
    println!("{}", out.json());
    println!("{}", engine.execute("print(", "").unwrap().json());
    println!("{}", engine.execute("import time\ntime.sleep(100)", r#"{"timeout":0.5}"#).unwrap().json());
}
